"""The HTTP interface for shells: one path per tool, arguments and output in the bodies.

No protobuf message is involved, so ``curl`` prints exactly the output of the tool.
"""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from fumehood.core.episode import Reply
from fumehood.core.json_values import JsonObject, ordered_json
from fumehood.core.ledger import units_by_name
from fumehood.core.outcome import Finished, GaveUp, ModelProblem, Refusal, RefusalKind, Stopped
from fumehood.core.tools import Value
from fumehood.wire.http.requests import CallQueue, TooLarge, read_body
from fumehood.wire.ports import SeatPort, TaskView
from fumehood.wire.seat_requests import stated_number

FAILURE_STATUS = 422
"""The tool rejected the call or failed. The path was right."""
REFUSAL_STATUS = 409
"""The service refused the message."""
TOO_LARGE_STATUS = 413

REMAINING_HEADER = "fumehood-remaining"
"""Units left after a call, as JSON."""
ENDED_HEADER = "fumehood-ended"
"""Whether the work has ended."""


CONFIDENCE_HEADER = "fumehood-confidence"
"""Confidence of a submission, 0 to 1."""


class PathsEndpoint:
    """Answers requests for the paths of one seat."""

    def __init__(self, seat: SeatPort, calls: CallQueue, body_bytes: int) -> None:
        self._seat = seat
        self._calls = calls
        self._body_bytes = body_bytes

    async def task(self, _request: Request) -> Response:
        """Return the instruction."""
        return PlainTextResponse(self._seat.view_task().instruction)

    async def tools(self, _request: Request) -> Response:
        """Return the tools."""
        tools: list[JsonObject] = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in self._seat.view_task().tools
        ]
        return _json(tools, 200)

    async def left(self, _request: Request) -> Response:
        """Return the number of the user's message and the units left."""
        view = self._seat.view_task()
        left = _json({"turn": view.turn, "remaining": units_by_name(view.remaining)}, 200)
        left.headers[ENDED_HEADER] = str(view.ended).lower()
        return left

    async def call(self, request: Request) -> Response:
        """Call the tool in the path with the arguments in the body."""
        text = await self._text(request)
        if isinstance(text, Response):
            return text
        tool, call_id = request.path_params["tool"], request.headers.get("fumehood-call-id", "")
        reply = await self._calls.execute(lambda: self._seat.call(tool, text, call_id))
        return _refused(reply) if isinstance(reply, Refusal) else _answered(reply)

    async def submit(self, request: Request) -> Response:
        """End the turn with the answer in the body."""
        text = await self._text(request)
        return text if isinstance(text, Response) else await self._end(Finished(text), request)

    async def give_up(self, request: Request) -> Response:
        """Give up with the reason in the body."""
        text = await self._text(request)
        return text if isinstance(text, Response) else await self._end(GaveUp(text), request)

    async def stop(self, request: Request) -> Response:
        """End the work because of the problem with the model that the body names."""
        problem = await self._problem(request)
        return (
            problem if isinstance(problem, Response) else await self._end(Stopped(problem), request)
        )

    async def report(self, request: Request) -> Response:
        """Record the problem with the model that the body names; the work continues."""
        problem = await self._problem(request)
        if isinstance(problem, Response):
            return problem
        recorded = await self._calls.execute(lambda: self._seat.report(problem))
        return _json({"recorded": recorded}, 200)

    async def permission(self, request: Request) -> Response:
        """Record the answer to a permission request: ``title`` and ``answer`` as JSON."""
        text = await self._text(request)
        if isinstance(text, Response):
            return text
        try:
            match json.loads(text):
                case {"title": str(title), "answer": str(answer)}:
                    # Half of a surrogate pair cannot be stored.
                    title = title.encode("utf-8", "replace").decode("utf-8")
                case _:
                    return _refused(Refusal(RefusalKind.MALFORMED))
        except (ValueError, RecursionError):
            return _refused(Refusal(RefusalKind.MALFORMED))
        recorded = await self._calls.execute(lambda: self._seat.report_permission(title, answer))
        return _json({"recorded": recorded}, 200)

    async def _problem(self, request: Request) -> ModelProblem | Response:
        text = await self._text(request)
        try:
            return text if isinstance(text, Response) else ModelProblem(text.strip())
        except ValueError:
            return _refused(Refusal(RefusalKind.MALFORMED))

    async def _end(self, end: Finished | GaveUp | Stopped, request: Request) -> Response:
        confidence = stated_number(request.headers.get(CONFIDENCE_HEADER))
        result = await self._calls.execute(lambda: self._seat.submit(end, confidence))
        if isinstance(result, Refusal):
            return _refused(result)
        if isinstance(result, TaskView):
            # The tools are listed at /tools; a shell needs the instruction.
            return _json({"accepted": True, "next": result.instruction, "turn": result.turn}, 200)
        return _json({"accepted": result}, 200)

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
    response.headers[ENDED_HEADER] = str(reply.ended).lower()
    return response


def _refused(refusal: Refusal) -> Response:
    body = {"refusal": refusal.kind.value, "limit": refusal.limit, "actual": refusal.actual}
    return _json(body, REFUSAL_STATUS)


def _json(value: object, status: int) -> Response:
    return Response(ordered_json(value), status, media_type="application/json")
