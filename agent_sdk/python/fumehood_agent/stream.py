"""One open stream: each request gets its response before the next request is sent."""

from __future__ import annotations

from queue import SimpleQueue

from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent._proto.v1.tool_pb2_grpc import ToolServiceStub


class Stream:
    """An open ``Interact`` RPC. Not safe for parallel use."""

    def __init__(self, stub: ToolServiceStub) -> None:
        # A thread of gRPC waits at this queue. Both are implemented in C, so this is fast.
        self._requests: SimpleQueue[pb.InteractRequest | None] = SimpleQueue()
        self._call = stub.Interact(iter(self._requests.get, None))
        self._responses = iter(self._call)

    def exchange(self, request: pb.InteractRequest) -> pb.InteractResponse | None:
        """Return the response to ``request``; None if the service has closed the stream.

        Raises:
            grpc.RpcError: the stream broke.
        """
        self._requests.put(request)
        return next(self._responses, None)

    def close(self) -> None:
        """Close the stream; a waiting request fails."""
        self._requests.put(None)
        self._call.cancel()  # type: ignore[no-untyped-call]  # its stub lacks a type
