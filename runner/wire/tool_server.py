"""The server behind one seat's socket."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import grpc
from glovebox.v1 import tool_pb2, tool_pb2_grpc

from runner.core.outcome import Finished, GaveUp
from runner.core.refusal import Refusal
from runner.wire.convert import answer_to_pb, task_to_pb
from runner.wire.ports import SeatPort


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServerLimits:
    """What one agent may do to its server; beyond, gRPC itself answers RESOURCE_EXHAUSTED."""

    message_bytes: int = 4 * 1024 * 1024
    """Of one message to the server."""
    concurrent_calls: int = 16
    """Calls and streams open at once, over all connections."""
    header_bytes: int = 8 * 1024
    """Of one call's metadata."""


class ToolServer:
    """Serves one seat on one Unix socket."""

    def __init__(self, seat: SeatPort, socket_path: str, limits: ToolServerLimits) -> None:
        """Listen at once.

        Args:
            seat: whom to serve.
            socket_path: where to listen, at most 107 bytes.
            limits: what the agent may do.

        Raises:
            RuntimeError: the socket cannot be bound.
        """
        options = [
            ("grpc.max_receive_message_length", limits.message_bytes),
            ("grpc.max_concurrent_streams", limits.concurrent_calls),
            ("grpc.max_metadata_size", limits.header_bytes),
            ("grpc.absolute_max_metadata_size", limits.header_bytes),
        ]
        self._server = grpc.server(
            ThreadPoolExecutor(limits.concurrent_calls, "seat"),
            options=options,
            maximum_concurrent_rpcs=limits.concurrent_calls,
        )
        tool_pb2_grpc.add_ToolServiceServicer_to_server(_ToolService(seat), self._server)
        self._server.add_insecure_port(f"unix:{socket_path}")
        self._server.start()

    def stop(self) -> None:
        """Drop every connection at once and remove the socket."""
        self._server.stop(None).wait()


class _ToolService(tool_pb2_grpc.ToolServiceServicer):
    def __init__(self, seat: SeatPort) -> None:
        self._seat = seat

    def GetTask(
        self, request: tool_pb2.GetTaskRequest, context: grpc.ServicerContext
    ) -> tool_pb2.GetTaskResponse:
        return task_to_pb(self._seat.view_task())

    def CallTool(
        self, request: tool_pb2.CallToolRequest, context: grpc.ServicerContext
    ) -> tool_pb2.CallToolResponse:
        return self._call(request)

    def Submit(
        self, request: tool_pb2.SubmitRequest, context: grpc.ServicerContext
    ) -> tool_pb2.SubmitResponse:
        return self._submit(request)

    def Interact(
        self,
        request_iterator: Iterator[tool_pb2.InteractRequest],
        context: grpc.ServicerContext,
    ) -> Iterator[tool_pb2.InteractResponse]:
        for request in request_iterator:
            if request.WhichOneof("request") == "submit":
                yield tool_pb2.InteractResponse(submit=self._submit(request.submit))
            else:
                yield tool_pb2.InteractResponse(call=self._call(request.call))

    def _call(self, request: tool_pb2.CallToolRequest) -> tool_pb2.CallToolResponse:
        return answer_to_pb(self._seat.call(request.tool_name, request.arguments_json, request.call_id))

    def _submit(self, request: tool_pb2.SubmitRequest) -> tool_pb2.SubmitResponse:
        given_up = request.WhichOneof("end") == "give_up_reason"
        end = GaveUp(request.give_up_reason) if given_up else Finished(request.answer)
        counted = self._seat.submit(end)
        return tool_pb2.SubmitResponse(accepted=not isinstance(counted, Refusal) and counted)
