"""Runs inside a box: times tool calls and a bare gRPC echo of the same bytes alternately.

Uses nothing but gRPC and the generated code, so that both sides of the comparison have the same
client.
"""

from __future__ import annotations

import json
import queue
import sys
import time
from collections.abc import Callable
from typing import Any

import grpc

from fumehood_agent._proto.v1 import tool_pb2, tool_pb2_grpc

ECHO_SOCKET = "/fumehood/echo.sock"
ROUNDS = 20
CALLS_A_ROUND = 100
WARM_UP = 200


class Probe:
    """An agent that measures instead of working."""

    def run(self, session: Any) -> None:
        """Time unary calls and a stream, tool and echo in alternating rounds, microseconds."""
        tool = grpc.insecure_channel(f"unix:{session.path}")
        arguments = '{"id": "acct3"}'
        request = tool_pb2.CallToolRequest(tool_name="get_account", arguments_json=arguments)
        sent = request.SerializeToString()
        got = tool_pb2_grpc.ToolServiceStub(tool).CallTool(request).SerializeToString()
        echo = grpc.insecure_channel(f"unix:{ECHO_SOCKET}")
        size = len(got).to_bytes(4, "big")
        _unary(echo, "/echo/SetSize", size)()
        times: dict[str, list[float]] = {}
        calls = {
            "unary_tool": _unary(tool, "/fumehood.v1.ToolService/CallTool", sent),
            "unary_echo": _unary(echo, "/echo/Unary", sent),
            "stream_tool": _stream(tool, "/fumehood.v1.ToolService/Interact", _interact(request)),
            "stream_echo": _stream(echo, "/echo/Stream", _interact(request)),
        }
        for call in calls.values():
            _time(call, WARM_UP)
        for _ in range(ROUNDS):
            for name, call in calls.items():
                before = time.process_time()
                times.setdefault(name, []).extend(_time(call, CALLS_A_ROUND))
                spent = (time.process_time() - before) / CALLS_A_ROUND
                times.setdefault(f"{name}_client", []).append(spent)
        figures = {name: [round(s * 1e6, 1) for s in values] for name, values in times.items()}
        json.dump(figures, sys.stdout)
        session.submit()


def _interact(request: tool_pb2.CallToolRequest) -> bytes:
    return tool_pb2.InteractRequest(call=request).SerializeToString()


def _time(call: Callable[[], object], count: int) -> list[float]:
    times = []
    for _ in range(count):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return times


def _unary(channel: grpc.Channel, method: str, message: bytes) -> Callable[[], object]:
    # Bytes in and bytes out on both sides: the comparison is of the servers and what they do.
    remote = channel.unary_unary(method, None, None)
    return lambda: remote(message)


def _stream(channel: grpc.Channel, method: str, message: bytes) -> Callable[[], object]:
    outgoing: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    incoming: Any = channel.stream_stream(method, None, None)(iter(outgoing.get, None))

    def call() -> object:
        outgoing.put(message)
        return next(incoming)

    return call
