"""Provokes errors and prints their texts, headers and trailers."""

from __future__ import annotations

import os

import grpc
from attempts import SOCKET
from calls import TOOLS, open_channel
from speak_http import request, talk

from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent._proto.v1.tool_pb2_grpc import ToolServiceStub

PATHS = ("7", "null", '"/", "more": 1', r'"\ud800"', '"' + "../" * 50 + 'etc/passwd"', r'"\u0000"')
REFERENCE = '{"$ref": "file:///etc/passwd"}'
PATH_OBJECTS = (f'{{"path": {path}}}' for path in (*PATHS, REFERENCE))
ARGUMENTS = ("", "{}", "[]", "nonsense", "[" * 70 + "]" * 70, *PATH_OBJECTS)
RAW = (b"\xff" * 20, b"\x0a\x02\xff\xfe", b"\xa3\x06" * 200, b"\x0a" + b"\xff" * 10)


def show(what: str, text: object) -> None:
    os.write(1, f"{what}: {text}\n".encode("utf-8", "replace"))


def show_failure(what: str, error: grpc.RpcError) -> None:
    show(f"tried {what}", f"{error.code()} {error.details()!r}")
    show("trailers", error.trailing_metadata())
    show("debug", getattr(error, "debug_error_string", str)())


def call(stub: ToolServiceStub, tool: str, arguments: str) -> None:
    try:
        asked = pb.CallToolRequest(tool_name=tool, arguments_json=arguments)
        answer, outcome = stub.CallTool.with_call(asked, timeout=5)
        show(f"tried {tool}", " ".join(str(answer).split()))
        show("headers", (outcome.initial_metadata(), outcome.trailing_metadata()))
    except grpc.RpcError as error:
        show_failure(tool, error)


with open_channel() as channel:
    stub = ToolServiceStub(channel)
    show("tried the instruction", stub.GetTask(pb.GetTaskRequest(), timeout=5))
    for arguments in ARGUMENTS:
        for tool in ("read_file", "list_dir", "no_such_tool"):
            call(stub, tool, arguments)
    for number, method in enumerate(("CallTool", "Submit", "GetTask", "Nothing")):
        for octets in RAW:
            try:
                channel.unary_unary(TOOLS + method, None, None)(octets, timeout=5)
            except grpc.RpcError as error:
                show_failure(f"method {number}", error)
    try:
        list(stub.Interact(iter([pb.InteractRequest()] * 3), timeout=5))
    except grpc.RpcError as error:
        show_failure("Interact", error)
    stub.Submit(pb.SubmitRequest(answer=""), timeout=5)
    call(stub, "list_dir", '{"path": "/"}')
for path in ("/", "/nothing", "/call/", "/mcp", "/v1/models", f"{TOOLS}Nothing", "/%ff"):
    for method in ("GET", "POST", "PUT"):
        for octets in (request(method, path, b"{"), f"{method} {path} HTTP/1.0\r\n\r\n".encode()):
            show(f"tried {method} {path}", talk(octets, 0.2))
show("socket", SOCKET)
