"""The server behind one seat's socket."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from fumehood.wire.convert import task_to_pb
from fumehood.wire.ports import SeatPort
from fumehood.wire.seat_messages import answer_call, answer_interaction, answer_submission
from fumehood_agent._proto.v1 import tool_pb2

M = TypeVar("M", bound=Message)

STOP_TIMEOUT_S = 5.0
"""Until a stopping server is left to itself; it takes milliseconds unless gRPC has lost track of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServerLimits:
    """What one agent may do to its server; beyond, gRPC itself answers RESOURCE_EXHAUSTED."""

    message_bytes: int = 4 * 1024 * 1024
    """Of one message to the server."""
    concurrent_calls: int = 16
    """Calls and streams open at once, over all connections."""
    header_bytes: int = 8 * 1024
    """Of one call's metadata."""
    connections: int = 64
    """Open at once; more are hung up on. Without a bound one agent could use up the service's descriptors."""
    handshake_ms: int = 5_000
    """From connecting until the connection speaks the protocol."""


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
            ("grpc.max_allowed_incoming_connections", limits.connections),
            ("grpc.server_handshake_timeout_ms", limits.handshake_ms),
        ]
        self._server = grpc.server(
            ThreadPoolExecutor(limits.concurrent_calls, "seat"),
            options=options,
            maximum_concurrent_rpcs=limits.concurrent_calls,
        )
        self._server.add_generic_rpc_handlers((_handlers(_ToolService(seat)),))
        self._server.add_insecure_port(f"unix:{socket_path}")
        self._server.start()

    def stop(self) -> None:
        """Drop every connection at once and remove the socket."""
        self._server.stop(None).wait(STOP_TIMEOUT_S)


class _ToolService:
    def __init__(self, seat: SeatPort) -> None:
        self._seat = seat

    def get_task(self, raw: bytes, context: grpc.ServicerContext) -> tool_pb2.GetTaskResponse:
        _read(tool_pb2.GetTaskRequest, raw, context)
        return task_to_pb(self._seat.view_task())

    def call_tool(self, raw: bytes, context: grpc.ServicerContext) -> tool_pb2.CallToolResponse:
        return answer_call(self._seat, _read(tool_pb2.CallToolRequest, raw, context))

    def submit(self, raw: bytes, context: grpc.ServicerContext) -> tool_pb2.SubmitResponse:
        return answer_submission(self._seat, _read(tool_pb2.SubmitRequest, raw, context))

    def interact(
        self, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[tool_pb2.InteractResponse]:
        for raw in requests:
            yield answer_interaction(self._seat, _read(tool_pb2.InteractRequest, raw, context))


def _read(kind: type[M], raw: bytes, context: grpc.ServicerContext) -> M:
    """Return the message that an agent sent, or end the call when it is none."""
    try:
        return kind.FromString(raw)
    except DecodeError:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not a message of this protocol")


def _handlers(service: _ToolService) -> grpc.GenericRpcHandler[Any, Any]:
    """Return the service's methods by name, as the generated code would, but for the reading of messages.

    They are read here: after one that is no message, gRPC's own reader leaves the call open for ever. Then
    the connection has one stream less to offer, and the server cannot be stopped.
    """
    unary, stream = grpc.unary_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
    return grpc.method_handlers_generic_handler(
        tool_pb2.DESCRIPTOR.services_by_name["ToolService"].full_name,
        {
            "GetTask": unary(service.get_task, None, tool_pb2.GetTaskResponse.SerializeToString),
            "CallTool": unary(service.call_tool, None, tool_pb2.CallToolResponse.SerializeToString),
            "Submit": unary(service.submit, None, tool_pb2.SubmitResponse.SerializeToString),
            "Interact": stream(service.interact, None, tool_pb2.InteractResponse.SerializeToString),
        },
    )
