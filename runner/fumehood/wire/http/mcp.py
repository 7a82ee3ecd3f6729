"""MCP for one seat: its tools as an MCP server, over streamable HTTP and over lines.

The ``mcp`` library implements the protocol. The instruction of the task is the server's
``instructions``, and two additional tools end the work. Two further tools state a problem with the
model; they are not listed, because they are for the program and not for its model. The ``_meta``
object of each result contains what MCP has no field for, as the protobuf message: the units left,
and whether the work has ended.

The line transport adds to MCP's stdio transport what a program that only copies lines cannot: the
headers that the HTTP transport requires, taken from the message, and the request ID in a response
to a malformed request. Clients that try the newest revision first wait for such a response before
they try another revision.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import mcp_types as types
from google.protobuf import json_format
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope

from fumehood.core.json_values import ordered_json
from fumehood.version import __version__
from fumehood.wire.convert import REFUSAL_KINDS, task_to_pb
from fumehood.wire.http.requests import CallQueue, TooLarge, read_body
from fumehood.wire.ports import SeatPort, TaskView
from fumehood.wire.seat_requests import (
    PROBLEMS,
    answer_call,
    answer_report,
    answer_submission,
    problem_number,
    stated_number,
)
from fumehood_agent._proto.v1 import tool_pb2

_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""Compact, as an agent would write it, because limits are in bytes."""

META = "fumehood.v1"
"""Key below ``_meta`` of the protobuf message without its value, the text of the result."""
STOP, REPORT = f"{META}/stop", f"{META}/report"
"""Tools that are not listed."""
SESSIONS_MAX = 64
"""Open sessions per seat."""
SESSION_HEADER = "mcp-session-id"
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
"""Where a message of a revision without sessions states its revision."""
_REFUSAL_NAMES = {number: kind.value for kind, number in REFUSAL_KINDS.items()}


class McpEndpoint:
    """The MCP server of one seat."""

    def __init__(self, seat: SeatPort, calls: CallQueue, body_bytes: int) -> None:
        """Name the two additional tools so that no tool of the seat has the same name."""
        self._seat = seat
        self._calls = calls
        view = seat.view_task()
        taken = {tool.name for tool in view.tools}
        self._submit = _free("submit", taken)
        self._give_up = _free("give_up", taken)
        self._endings = _endings(self._submit, self._give_up, view.asks_confidence)
        server = Server[Any](
            "fumehood",
            version=__version__,
            instructions=view.instruction,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        # The default middleware creates OpenTelemetry spans, which cost time and have no exporter
        # here.
        server.middleware.clear()
        self.sessions = StreamableHTTPSessionManager(
            server, json_response=True, max_request_body_size=body_bytes, max_sessions=SESSIONS_MAX
        )

    async def _list_tools(
        self, _context: Any, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        # Not cached: a turn of the user may add tools.
        view = self._seat.view_task()
        message = task_to_pb(view)
        # The result and ``instructions`` contain both already.
        message.ClearField("tools")
        message.ClearField("instruction")
        tools = [*_tools(view), *self._endings]
        return types.ListToolsResult(tools=tools, _meta={META: json_format.MessageToDict(message)})

    async def _call_tool(
        self, _context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments = params.arguments or {}
        if params.name in (self._submit, self._give_up):
            return await self._end(params.name, arguments)
        if params.name in (STOP, REPORT):
            return await self._state(params.name, arguments.get("problem"))
        call_id = (params.meta or {}).get("fumehood.v1/call_id", "")
        try:
            request = tool_pb2.CallToolRequest(
                tool_name=params.name, arguments_json=_json(arguments), call_id=str(call_id)
            )
        except (ValueError, RecursionError):
            # A lone surrogate in a name, or too deep. The endpoint refuses "[" as malformed and
            # counts it.
            request = tool_pb2.CallToolRequest(tool_name="", arguments_json="[")
        response = await self._calls.execute(lambda: answer_call(self._seat, request))
        return _result(response)

    async def _end(self, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        fields = {self._submit: ("answer", "answer"), self._give_up: ("reason", "give_up_reason")}
        argument, field = fields[name]
        text = arguments.get(argument, "")
        request = tool_pb2.SubmitRequest()
        try:
            setattr(request, field, text if isinstance(text, str) else ordered_json(text))
            if (confidence := stated_number(arguments.get("confidence"))) is not None:
                request.confidence = confidence
        except ValueError:
            message = f"{argument} contains a lone surrogate; send valid Unicode"
            return _text(message, is_error=True, meta={})
        return await self._submitted(request)

    async def _state(self, name: str, problem: object) -> types.CallToolResult:
        number = problem_number(problem)
        if not number:
            return _text(f"problem is none of {', '.join(PROBLEMS)}", is_error=True, meta={})
        if name == STOP:
            return await self._submitted(tool_pb2.SubmitRequest(stopped=number))
        request = tool_pb2.ReportRequest(problem=number)
        response = await self._calls.execute(lambda: answer_report(self._seat, request))
        message = "Recorded." if response.recorded else "Not recorded."
        return _text(message, is_error=False, meta=json_format.MessageToDict(response))

    async def _submitted(self, request: tool_pb2.SubmitRequest) -> types.CallToolResult:
        response = await self._calls.execute(lambda: answer_submission(self._seat, request))
        meta = json_format.MessageToDict(response)
        if response.HasField("refusal"):
            return _text(_refusal(response.refusal), is_error=True, meta=meta)
        if response.HasField("next"):
            return _text(response.next.instruction, is_error=False, meta=meta)
        message = (
            "Submitted." if response.accepted else "Not accepted: your work had already ended."
        )
        return _text(message, is_error=not response.accepted, meta=meta)


def _result(response: tool_pb2.CallToolResponse) -> types.CallToolResult:
    kind = response.WhichOneof("result")
    if kind == "value_json":
        text, is_error = response.value_json, False
        response.value_json = ""
    elif kind == "failure":
        failure = response.failure
        details = json.loads(failure.details_json or "{}")
        text = ordered_json({"code": failure.code, "message": failure.message, "details": details})
        is_error = True
    else:
        text, is_error = _refusal(response.refusal), True
    return _text(text, is_error=is_error, meta=json_format.MessageToDict(response))


def _refusal(refusal: tool_pb2.Refusal) -> str:
    name = _REFUSAL_NAMES[refusal.kind]
    return ordered_json({"refusal": name, "limit": refusal.limit, "actual": refusal.actual})


def _text(text: str, *, is_error: bool, meta: Mapping[str, Any]) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, is_error=is_error, _meta={META: dict(meta)})


def _tools(view: TaskView) -> list[types.Tool]:
    return [
        types.Tool(
            name=tool.name, description=tool.description or None, input_schema=tool.parameters
        )
        for tool in view.tools
    ]


def _endings(submit: str, give_up: str, asks_confidence: bool) -> list[types.Tool]:
    further = {"confidence": _CONFIDENCE} if asks_confidence else {}
    submitting = "Submit your answer. Call this tool once, when you have finished."
    giving_up = "Give up. Call this tool if the task cannot or must not be done."
    return [
        _ending(submit, submitting, {"answer": {"type": "string"}, **further}),
        _ending(give_up, giving_up, {"reason": {"type": "string"}, **further}),
    ]


_CONFIDENCE = {
    "type": "number",
    "minimum": 0,
    "maximum": 1,
    "description": "Probability that you have done the task correctly.",
}


def _ending(name: str, description: str, arguments: Mapping[str, Any]) -> types.Tool:
    schema = {"type": "object", "properties": dict(arguments), "additionalProperties": False}
    return types.Tool(name=name, description=description, input_schema=schema)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


class McpLines:
    """The line transport: converts lines to requests of the streamable HTTP transport."""

    def __init__(self, transport: ASGIApp, body_bytes: int) -> None:
        self._transport = transport
        self._body_bytes = body_bytes

    async def answer(self, request: Request) -> Response:
        """Answer one line with one line, or with an empty response."""
        try:
            line = await read_body(request, self._body_bytes)
        except TooLarge:
            reason = f"the line is longer than the limit of {self._body_bytes} bytes"
            return _error({"code": -32600, "message": reason}, None)
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return _error({"code": -32700, "message": "the line is not JSON"}, None)
        message = message if isinstance(message, dict) else {}
        session = request.headers.get(SESSION_HEADER, "")
        status, headers, body = await self._post(request, line, [*_headers(message, session)])
        if status >= 400:
            error = _error_of(body)
            return _error(error, message["id"]) if "id" in message else Response(status_code=202)
        kept = {SESSION_HEADER: headers[SESSION_HEADER]} if SESSION_HEADER in headers else {}
        return Response(body, status, kept, "application/json")

    async def _post(
        self, request: Request, line: bytes, headers: list[tuple[bytes, bytes]]
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a line to the HTTP transport and return status, headers and body of its response."""
        scope: Scope = {**request.scope, "path": "/mcp", "raw_path": b"/mcp", "headers": headers}
        sent: list[Message] = []
        left = iter([{"type": "http.request", "body": line, "more_body": False}])
        receive: Receive = request.receive

        async def read() -> Message:
            return next(left, None) or await receive()

        async def send(message: Message) -> None:
            sent.append(message)

        await self._transport(scope, read, send)
        start = sent[0]
        response_headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]
        }
        return (
            start["status"],
            response_headers,
            b"".join(part.get("body", b"") for part in sent[1:]),
        )


def _headers(message: dict[str, Any], session: str) -> Iterator[tuple[bytes, bytes]]:
    yield b"host", b"box"
    yield b"content-type", b"application/json"
    yield b"accept", b"application/json, text/event-stream"
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta")
    version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
    if not isinstance(version, str):
        if session:
            yield SESSION_HEADER.encode(), session.encode("latin-1")
        return
    routing = {
        "mcp-protocol-version": version,
        "mcp-method": message.get("method"),
        "mcp-name": params.get("name"),
    }
    for name, value in routing.items():
        if isinstance(value, str) and value.isascii() and value.isprintable():
            yield name.encode(), value.encode()


def _error_of(body: bytes) -> dict[str, Any]:
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        error = None
    return error if isinstance(error, dict) else {"code": -32600, "message": "invalid request"}


def _error(error: dict[str, Any], request_id: Any) -> Response:
    text = json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error})
    return Response(text, media_type="application/json")
