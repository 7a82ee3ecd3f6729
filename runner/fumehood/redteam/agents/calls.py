"""Calls over the published protocol, without the SDK."""

from __future__ import annotations

import grpc
from attempts import SOCKET, say

from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent._proto.v1.tool_pb2_grpc import ToolServiceStub

TIMEOUT_S = 10
TOOLS = "/fumehood.v1.ToolService/"
"""Prefix of the methods for agents."""


def open_channel() -> grpc.Channel:
    """Return a separate connection."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]
    return grpc.insecure_channel(f"unix:{SOCKET}", options)


def call(channel: grpc.Channel, tool: str, arguments: str, call_id: str = "") -> str:
    """Call a tool and return ``value``, a failure's code, a refusal's kind, or a status."""
    request = pb.CallToolRequest(tool_name=tool, arguments_json=arguments, call_id=call_id)
    try:
        answer = ToolServiceStub(channel).CallTool(request, timeout=TIMEOUT_S)
    except grpc.RpcError as error:
        return status(error)
    if answer.HasField("refusal"):
        return pb.RefusalKind.Name(answer.refusal.kind).removeprefix("REFUSAL_KIND_").lower()
    return answer.failure.code if answer.HasField("failure") else "value"


def submit(channel: grpc.Channel, answer: str) -> bool:
    """Submit an answer and return whether it counts."""
    return ToolServiceStub(channel).Submit(pb.SubmitRequest(answer=answer), timeout=20).accepted


def say_whether_served() -> None:
    """Print the status of one more call."""
    with open_channel() as channel:
        say(f"tried to be answered afterwards: {call(channel, 'list_dir', '{}')}")


def varint(value: int) -> bytes:
    """Return a number in the encoding of protobuf."""
    octets = bytearray()
    while value >= 128:
        octets.append(value % 128 + 128)
        value //= 128
    return bytes([*octets, value])


def send_raw(channel: grpc.Channel, method: str, octets: bytes, **settings: object) -> str:
    """Send any bytes to any method and return the status."""
    try:
        channel.unary_unary(method, None, None)(octets, timeout=TIMEOUT_S, **settings)  # type: ignore[arg-type]
    except grpc.RpcError as error:
        return status(error)
    return "OK"


def status(error: grpc.RpcError) -> str:
    """Return the name of a status."""
    return error.code().name if isinstance(error, grpc.Call) else type(error).__name__
