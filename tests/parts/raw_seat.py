"""A client of a seat's socket without the SDK, which can send invalid messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent._proto.v1.tool_pb2_grpc import ToolServiceStub

SERVICE = "/fumehood.v1.ToolService"
TIMEOUT_S = 20.0

_OPTIONS = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # Otherwise channels to one socket would share one connection.
    ("grpc.use_local_subchannel_pool", 1),
]


class RawSeat:
    """One connection to one seat."""

    def __init__(self, directory: str) -> None:
        self.channel = grpc.insecure_channel(f"unix:{directory}/grpc.sock", _OPTIONS)
        self.stub = ToolServiceStub(self.channel)

    def task(self) -> pb.GetTaskResponse:
        """Ask for the task."""
        return self.stub.GetTask(pb.GetTaskRequest(), timeout=TIMEOUT_S)

    def call(self, tool: str, call_id: str = "", /, **arguments: Any) -> pb.CallToolResponse:
        """Make one call."""
        return self.send(tool, json.dumps(arguments), call_id)

    def send(self, tool: str, arguments_json: str, call_id: str = "") -> pb.CallToolResponse:
        """Make one call whose arguments are any text."""
        request = pb.CallToolRequest(tool_name=tool, arguments_json=arguments_json, call_id=call_id)
        return self.stub.CallTool(request, timeout=TIMEOUT_S)

    def submit(self, answer: str = "") -> pb.SubmitResponse:
        """Submit an answer."""
        return self.stub.Submit(pb.SubmitRequest(answer=answer), timeout=TIMEOUT_S)

    def interact(self, requests: Iterator[pb.InteractRequest]) -> Iterator[pb.InteractResponse]:
        """Open a stream."""
        return iter(self.stub.Interact(requests, timeout=TIMEOUT_S))

    def raw(self, method: str, message: bytes) -> bytes:
        """Send bytes as if they were a message."""
        send: Any = self.channel.unary_unary(f"{SERVICE}/{method}", None, None)
        answer: bytes = send(message, timeout=TIMEOUT_S)
        return answer

    def raw_stream(self, messages: Iterator[bytes]) -> list[bytes]:
        """Send bytes as if they were messages of a stream."""
        send: Any = self.channel.stream_stream(f"{SERVICE}/Interact", None, None)
        return list(send(messages, timeout=TIMEOUT_S))


@contextmanager
def socket_dir(directory: str) -> Iterator[RawSeat]:
    """Connect to the seat whose sockets are in ``directory``, and hang up afterwards."""
    connection = RawSeat(directory)
    try:
        yield connection
    finally:
        connection.channel.close()


def refused_with(send: Callable[[], object]) -> tuple[grpc.StatusCode, str]:
    """Return the status with which gRPC turned ``send`` away."""
    with pytest.raises(grpc.RpcError) as raised:
        send()
    assert isinstance(raised.value, grpc.Call)
    return raised.value.code(), raised.value.details() or ""
