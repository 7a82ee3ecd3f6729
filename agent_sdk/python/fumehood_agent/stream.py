"""One open exchange: a request out, its answer in, strictly in turn. Knows nothing about calls or tasks."""

from __future__ import annotations

from queue import SimpleQueue

from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent._proto.v1.tool_pb2_grpc import ToolServiceStub


class Stream:
    """An ``Interact`` that stays open. Not for several threads at once."""

    def __init__(self, stub: ToolServiceStub) -> None:
        # gRPC's own thread waits at this queue; both sides of it are C, so handing over costs little.
        self._requests: SimpleQueue[pb.InteractRequest | None] = SimpleQueue()
        self._call = stub.Interact(iter(self._requests.get, None))
        self._responses = iter(self._call)

    def exchange(self, request: pb.InteractRequest) -> pb.InteractResponse | None:
        """Return the answer to ``request``; None when the other side has closed the stream.

        Raises:
            grpc.RpcError: the stream broke.
        """
        self._requests.put(request)
        return next(self._responses, None)

    def close(self) -> None:
        """End the stream; whoever waits for an answer is told that it broke."""
        self._requests.put(None)
        self._call.cancel()  # type: ignore[no-untyped-call]  # its stub lacks a type
