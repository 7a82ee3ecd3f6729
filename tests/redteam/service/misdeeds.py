"""Malformed and oversized messages to a seat's socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import grpc

from fumehood_agent._proto.v1 import tool_pb2 as pb
from tests.parts.raw_seat import RawSeat

NOT_A_MESSAGE = b"\xff\xff\xff\x0f"
NOT_UTF8 = b"\x0a\x02\xff\xfe"
GOOD_MESSAGE = pb.InteractRequest(
    call=pb.CallToolRequest(tool_name="get_account")
).SerializeToString()

Misdeed = Callable[[RawSeat], object]


def _large(connection: RawSeat) -> object:
    return connection.send("get_account", " " * (5 << 20))


def _inflated(connection: RawSeat) -> object:
    """Send 50 MB, compressed to a few thousand bytes."""
    request = pb.CallToolRequest(tool_name="get_account", arguments_json=" " * (50 << 20))
    return connection.stub.CallTool(request, compression=grpc.Compression.Gzip, timeout=20)


def _metadata(size: int) -> Misdeed:
    request, pair = pb.GetTaskRequest(), ("key", "x" * size)
    return lambda connection: connection.stub.GetTask(request, metadata=(pair,), timeout=20)


def _method(path: str) -> Misdeed:
    def call(connection: RawSeat) -> object:
        send: Any = connection.channel.unary_unary(path, None, None)
        return send(b"", timeout=20)

    return call


MISDEEDS: Mapping[str, Misdeed] = {
    "no task request": lambda each: each.raw("GetTask", NOT_A_MESSAGE),
    "no call": lambda each: each.raw("CallTool", NOT_A_MESSAGE),
    "no submission": lambda each: each.raw("Submit", NOT_A_MESSAGE),
    "a call that is not UTF-8": lambda each: each.raw("CallTool", NOT_UTF8),
    "no stream message": lambda each: each.raw_stream(iter([NOT_A_MESSAGE])),
    "no stream message after a good one": lambda each: each.raw_stream(
        iter([GOOD_MESSAGE, NOT_A_MESSAGE])
    ),
    "too large a call": _large,
    "too large a call once it is unpacked": _inflated,
    "too large a stream message": lambda each: each.raw_stream(iter([b"\x0a" + b"x" * (5 << 20)])),
    "too much metadata": _metadata(20_000),
    "an unknown method": _method("/fumehood.v1.ToolService/Dump"),
    "an unknown service": _method("/x/y"),
    "the orchestrator's methods": _method("/fumehood.v1.ControlService/Health"),
    "an empty path": _method("/"),
}
"""The gRPC status of each rejection."""

STATUS_TEXTS = (
    "malformed message: see fumehood/v1/tool.proto",
    "Method not found!",
    "larger than max",
    "metadata size exceeds",
)
"""The complete texts of those statuses; none reveals the host."""
