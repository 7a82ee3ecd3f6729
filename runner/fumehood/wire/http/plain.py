"""The seat for shells: a tool is a path, its arguments are the body, its output is the answer.

No message of the contract is seen here, so nothing has to be wrapped or unwrapped: what curl prints is what
the tool said.
"""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from fumehood.core.episode import Reply
from fumehood.core.json_values import JsonObject, ordered_json
from fumehood.core.ledger import units_by_name
from fumehood.core.outcome import Finished, GaveUp, Refusal
from fumehood.core.tools import Value
from fumehood.wire.http.body import TooLarge, read_body
from fumehood.wire.http.turns import Turns
from fumehood.wire.ports import SeatPort, TaskView

FAILURE_STATUS = 422
"""The tool said no; it is not the path that was wrong."""
REFUSAL_STATUS = 409
"""The wall said no."""
TOO_LARGE_STATUS = 413

REMAINING_HEADER = "fumehood-remaining"
"""What is left after a call, as JSON; ``fumehood-ended`` says whether the work has ended."""


class PlainDoor:
    """Answers for one seat."""

    def __init__(self, seat: SeatPort, turns: Turns, body_bytes: int) -> None:
        self._seat = seat
        self._turns = turns
        self._body_bytes = body_bytes

    async def task(self, _request: Request) -> Response:
        """Return what to do, in words."""
        return PlainTextResponse(self._seat.view_task().instruction)

    async def tools(self, _request: Request) -> Response:
        """Return the tools."""
        tools: list[JsonObject] = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in self._seat.view_task().tools
        ]
        return _json(tools, 200)

    async def left(self, _request: Request) -> Response:
        """Return which message of the user it is, and what is left to spend."""
        view = self._seat.view_task()
        remaining = units_by_name(view.remaining)
        return _json({"turn": view.turn, "remaining": remaining}, 200)

    async def call(self, request: Request) -> Response:
        """Call the tool that the path names with the arguments in the body."""
        text = await self._text(request)
        if isinstance(text, Response):
            return text
        tool, call_id = request.path_params["tool"], request.headers.get("fumehood-call-id", "")
        answer = await self._turns.take(lambda: self._seat.call(tool, text, call_id))
        return _refused(answer) if isinstance(answer, Refusal) else _answered(answer)

    async def submit(self, request: Request) -> Response:
        """End the work with an answer."""
        text = await self._text(request)
        return text if isinstance(text, Response) else await self._end(Finished(text))

    async def give_up(self, request: Request) -> Response:
        """End the work without one."""
        text = await self._text(request)
        return text if isinstance(text, Response) else await self._end(GaveUp(text))

    async def _end(self, end: Finished | GaveUp) -> Response:
        counted = await self._turns.take(lambda: self._seat.submit(end))
        if isinstance(counted, Refusal):
            return _refused(counted)
        if isinstance(counted, TaskView):
            # The tools are where they were before; a shell needs the words.
            return _json({"accepted": True, "next": counted.instruction, "turn": counted.turn}, 200)
        return _json({"accepted": counted}, 200)

    async def _text(self, request: Request) -> str | Response:
        try:
            return (await read_body(request, self._body_bytes)).decode("utf-8")
        except TooLarge:
            return _json({"refusal": "too_large", "limit": self._body_bytes}, TOO_LARGE_STATUS)
        except UnicodeDecodeError:
            return _json({"refusal": "malformed"}, REFUSAL_STATUS)


def _answered(reply: Reply) -> Response:
    result = reply.result
    if isinstance(result, Value):
        response = _json(result.output, 200)
    else:
        failure = {"code": result.code, "message": result.message, "details": dict(result.details)}
        response = _json(failure, FAILURE_STATUS)
    response.headers[REMAINING_HEADER] = json.dumps(units_by_name(reply.remaining))
    response.headers["fumehood-ended"] = "true" if reply.ended else "false"
    return response


def _refused(refusal: Refusal) -> Response:
    words = {"refusal": refusal.kind.value, "limit": refusal.limit, "actual": refusal.actual}
    return _json(words, REFUSAL_STATUS)


def _json(value: object, status: int) -> Response:
    return Response(ordered_json(value), status, media_type="application/json")
