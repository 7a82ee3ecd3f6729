"""The unary methods of ``ToolService`` over HTTP, in the Connect protocol.

``POST /fumehood.v1.ToolService/CallTool`` takes a message as JSON, or in binary as
``application/proto``. The response has the same form; errors are JSON with a code of a closed set.
Source: https://connectrpc.com/docs/protocol
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from fumehood.wire.convert import task_to_pb
from fumehood.wire.http.requests import CallQueue, TooLarge, read_body
from fumehood.wire.ports import SeatPort
from fumehood.wire.seat_requests import answer_call, answer_report, answer_submission
from fumehood_agent._proto.v1 import tool_pb2

SERVICE = tool_pb2.DESCRIPTOR.services_by_name["ToolService"].full_name

_BINARY = "application/proto"
_JSON = "application/json"
_STATUS = {"invalid_argument": 400, "resource_exhausted": 429, "unimplemented": 501}

_Method = tuple[type[Message], Callable[[SeatPort, Any], Message]]
METHODS: dict[str, _Method] = {
    "GetTask": (tool_pb2.GetTaskRequest, lambda seat, _: task_to_pb(seat.view_task())),
    "CallTool": (tool_pb2.CallToolRequest, answer_call),
    "Submit": (tool_pb2.SubmitRequest, answer_submission),
    "Report": (tool_pb2.ReportRequest, answer_report),
}


class ConnectEndpoint:
    """Answers Connect requests of one seat."""

    def __init__(self, seat: SeatPort, calls: CallQueue, body_bytes: int) -> None:
        self._seat = seat
        self._calls = calls
        self._body_bytes = body_bytes

    async def answer(self, request: Request) -> Response:
        """Answer one request; ``method`` is part of its path."""
        name = request.path_params["method"]
        if name not in METHODS:
            return _error("unimplemented", f"unknown method; available: {', '.join(METHODS)}")
        kind, method = METHODS[name]
        # curl labels every body as a form, so any content type but the binary one means JSON.
        content_type = request.headers.get("content-type", "").partition(";")[0]
        binary = content_type.strip().lower() == _BINARY
        try:
            body = await read_body(request, self._body_bytes)
        except TooLarge:
            return _error("resource_exhausted", f"the limit is {self._body_bytes} bytes")
        try:
            message = _read(kind, body, binary=binary)
        except (DecodeError, json_format.ParseError, ValueError, RecursionError):
            return _error("invalid_argument", f"the body is not a {kind.DESCRIPTOR.name}")
        response = await self._calls.execute(lambda: method(self._seat, message))
        if binary:
            return Response(response.SerializeToString(), media_type=_BINARY)
        return Response(json_format.MessageToJson(response, indent=None), media_type=_JSON)


def _read(kind: type[Message], body: bytes, *, binary: bool) -> Message:
    if binary:
        return kind.FromString(body)
    return json_format.Parse(body or b"{}", kind())


def _error(code: str, message: str) -> Response:
    return JSONResponse({"code": code, "message": message}, _STATUS[code])
