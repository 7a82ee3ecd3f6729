"""The gRPC server behind the socket of one seat."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from fumehood.core.errors import InfraError
from fumehood.wire.convert import task_to_pb
from fumehood.wire.ports import SeatPort
from fumehood.wire.seat_requests import (
    answer_call,
    answer_interaction,
    answer_report,
    answer_submission,
)
from fumehood_agent._proto.v1 import tool_pb2

POLL_S = 0.002
M = TypeVar("M", bound=Message)

STOP_TIMEOUT_S = 5.0
"""Deadline for stopping a server. Stopping takes milliseconds unless gRPC lost track of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServerLimits:
    """Limits for one agent. gRPC answers RESOURCE_EXHAUSTED beyond them."""

    message_bytes: int = 4 * 1024 * 1024
    """Size of one message to the server."""
    concurrent_calls: int = 16
    """Open calls and streams, over all connections."""
    header_bytes: int = 8 * 1024
    """Size of the metadata of one call."""
    connections: int = 64
    """Open connections; the server closes any further one. Protects the file descriptors of the
    service."""
    handshake_ms: int = 5_000
    """Time from connecting to the end of the HTTP/2 handshake."""


class ToolServer:
    """Serves one seat on one Unix socket."""

    def __init__(self, seat: SeatPort, socket_path: str, limits: ToolServerLimits) -> None:
        """Start listening.

        Args:
            seat: the seat to serve.
            socket_path: where to listen, at most 107 bytes.
            limits: limits for the agent.

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

    def stop(self, grace_s: float | None = None) -> None:
        """Close all connections and remove the socket.

        Args:
            grace_s: how long replies in progress may take, seconds; None closes at once.
        """
        self._server.stop(grace_s).wait(STOP_TIMEOUT_S)


def warm_up(socket_path: str) -> None:
    """Use gRPC once and shut it down, so that forked processes start it in half of the time.

    They share the memory of what gRPC initialises only once. A process with active gRPC cannot
    fork, so neither threads nor files of gRPC may remain. Source: gRPC, doc/fork_support.md.

    Args:
        socket_path: where to listen for a moment, at most 107 bytes.

    Raises:
        InfraError: threads or files remain.
    """
    before = _threads_and_files()
    with ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads)
        server.add_insecure_port(f"unix:{socket_path}")
        server.start()
        server.stop(None).wait()
        del server
    gc.collect()
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while _threads_and_files() != before:
        if time.monotonic() > deadline:
            raise InfraError(f"gRPC did not shut down within {STOP_TIMEOUT_S:.0f} s")
        time.sleep(POLL_S)


def _threads_and_files() -> tuple[int, int]:
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


@cache
def start_grpc() -> grpc.Server:
    """Start the threads of gRPC in this process, so that the first server starts at once."""
    return grpc.server(ThreadPoolExecutor(1))


class _ToolService:
    def __init__(self, seat: SeatPort) -> None:
        self._seat = seat

    def get_task(self, raw: bytes, context: grpc.ServicerContext) -> tool_pb2.GetTaskResponse:
        self._parse(tool_pb2.GetTaskRequest, raw, context)
        return task_to_pb(self._seat.view_task())

    def call_tool(self, raw: bytes, context: grpc.ServicerContext) -> tool_pb2.CallToolResponse:
        return answer_call(self._seat, self._parse(tool_pb2.CallToolRequest, raw, context))

    def submit(self, raw: bytes, context: grpc.ServicerContext) -> tool_pb2.SubmitResponse:
        return answer_submission(self._seat, self._parse(tool_pb2.SubmitRequest, raw, context))

    def report(self, raw: bytes, context: grpc.ServicerContext) -> tool_pb2.ReportResponse:
        return answer_report(self._seat, self._parse(tool_pb2.ReportRequest, raw, context))

    def interact(
        self, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[tool_pb2.InteractResponse]:
        for raw in requests:
            yield answer_interaction(
                self._seat, self._parse(tool_pb2.InteractRequest, raw, context)
            )

    def _parse(self, kind: type[M], raw: bytes, context: grpc.ServicerContext) -> M:
        """Parse a message of an agent, or abort the call if it is malformed."""
        try:
            return kind.FromString(raw)
        except DecodeError:
            self._seat.count_refused(len(raw))
            context.abort(
                grpc.StatusCode.INVALID_ARGUMENT, "malformed message: see fumehood/v1/tool.proto"
            )


def _handlers(service: _ToolService) -> grpc.GenericRpcHandler[Any, Any]:
    """Return the methods of the service as the generated code does, but without deserializers.

    ``_ToolService`` parses the messages instead. After a malformed message gRPC's deserializer
    leaves the call open for ever: it keeps occupying one of the streams, and the server cannot be
    stopped.
    """
    unary, stream = grpc.unary_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
    return grpc.method_handlers_generic_handler(
        tool_pb2.DESCRIPTOR.services_by_name["ToolService"].full_name,
        {
            "GetTask": unary(service.get_task, None, tool_pb2.GetTaskResponse.SerializeToString),
            "CallTool": unary(service.call_tool, None, tool_pb2.CallToolResponse.SerializeToString),
            "Submit": unary(service.submit, None, tool_pb2.SubmitResponse.SerializeToString),
            "Report": unary(service.report, None, tool_pb2.ReportResponse.SerializeToString),
            "Interact": stream(service.interact, None, tool_pb2.InteractResponse.SerializeToString),
        },
    )
