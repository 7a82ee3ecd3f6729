"""The seat's tools as an MCP server, made by the ``mcp`` library.

The instruction of the task is the server's ``instructions``; two tools more end the work. What MCP has no
place for (what is left, whether the work has ended) is under ``_meta`` of every result, as the contract's
own message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from google.protobuf import json_format
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from fumehood.core.json_values import ordered_json
from fumehood.version import __version__
from fumehood.wire.convert import REFUSAL_KINDS, task_to_pb
from fumehood.wire.http.turns import Turns
from fumehood.wire.ports import SeatPort, TaskView
from fumehood.wire.seat_messages import answer_call, answer_submission
from fumehood_agent._proto.v1 import tool_pb2

_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""As short as what an agent would write, since a bound is in bytes."""

META = "fumehood.v1"
"""Where a result's ``_meta`` holds the contract's message, less the value that is its text anyway."""
SESSIONS_MAX = 64
"""Open at once at one seat."""
_REFUSAL_WORDS = {number: kind.value for kind, number in REFUSAL_KINDS.items()}


class McpDoor:
    """Tools of one seat, and its end, in MCP's words."""

    def __init__(self, seat: SeatPort, turns: Turns, body_bytes: int) -> None:
        """Read the tools, to have names for the endings that no tool has."""
        self._seat = seat
        self._turns = turns
        view = seat.view_task()
        taken = {tool.name for tool in view.tools}
        self._submit = _free("submit", taken)
        self._give_up = _free("give_up", taken)
        self._endings = _endings(self._submit, self._give_up)
        server = Server[Any](
            "fumehood",
            version=__version__,
            instructions=view.instruction,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        # Spans of a server that nobody watches would only cost time.
        server.middleware.clear()
        self.sessions = StreamableHTTPSessionManager(
            server, json_response=True, max_request_body_size=body_bytes, max_sessions=SESSIONS_MAX
        )

    async def _list_tools(
        self, _context: Any, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        # Asked for anew each time: a turn of the user may have brought more.
        view = self._seat.view_task()
        told = task_to_pb(view)
        # Both are said elsewhere: as what is listed, and as instructions.
        told.ClearField("tools")
        told.ClearField("instruction")
        tools = [*_tools(view), *self._endings]
        return types.ListToolsResult(tools=tools, _meta={META: json_format.MessageToDict(told)})

    async def _call_tool(
        self, _context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments = params.arguments or {}
        if params.name in (self._submit, self._give_up):
            return await self._end(params.name, arguments)
        call_id = (params.meta or {}).get("fumehood.v1/call_id", "")
        try:
            request = tool_pb2.CallToolRequest(
                tool_name=params.name, arguments_json=_json(arguments), call_id=str(call_id)
            )
        except (ValueError, RecursionError):
            # Half a surrogate pair in a name, or depth: the desk takes it down as what it is.
            request = tool_pb2.CallToolRequest(tool_name="", arguments_json="[")
        answer = await self._turns.take(lambda: answer_call(self._seat, request))
        return _result(answer)

    async def _end(self, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        words = {self._submit: ("answer", "answer"), self._give_up: ("reason", "give_up_reason")}
        argument, field = words[name]
        text = arguments.get(argument, "")
        request = tool_pb2.SubmitRequest()
        try:
            setattr(request, field, text if isinstance(text, str) else ordered_json(text))
        except ValueError:
            return _text("not a text that can be written down", is_error=True, meta={})
        answer = await self._turns.take(lambda: answer_submission(self._seat, request))
        meta = json_format.MessageToDict(answer)
        if answer.HasField("refusal"):
            return _text(_refusal(answer.refusal), is_error=True, meta=meta)
        if answer.HasField("next"):
            return _text(answer.next.instruction, is_error=False, meta=meta)
        said = "submitted" if answer.accepted else "the work had ended before"
        return _text(said, is_error=not answer.accepted, meta=meta)


def _result(answer: tool_pb2.CallToolResponse) -> types.CallToolResult:
    kind = answer.WhichOneof("result")
    if kind == "value_json":
        text, is_error = answer.value_json, False
        answer.value_json = ""
    elif kind == "failure":
        failure = answer.failure
        details = json.loads(failure.details_json or "{}")
        text = ordered_json({"code": failure.code, "message": failure.message, "details": details})
        is_error = True
    else:
        text, is_error = _refusal(answer.refusal), True
    return _text(text, is_error=is_error, meta=json_format.MessageToDict(answer))


def _refusal(refusal: tool_pb2.Refusal) -> str:
    word = _REFUSAL_WORDS[refusal.kind]
    return ordered_json({"refusal": word, "limit": refusal.limit, "actual": refusal.actual})


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


def _endings(submit: str, give_up: str) -> list[types.Tool]:
    return [
        _ending(
            submit, "Ends your work with an answer. Call it once, when you are done.", "answer"
        ),
        _ending(give_up, "Ends your work because it cannot or must not be done.", "reason"),
    ]


def _ending(name: str, description: str, argument: str) -> types.Tool:
    schema = {
        "type": "object",
        "properties": {argument: {"type": "string"}},
        "additionalProperties": False,
    }
    return types.Tool(name=name, description=description, input_schema=schema)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
