"""What an agent asks of a model, read far enough to be charged and passed on."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from fumehood.core.json_values import JsonObject
from fumehood.gateway.cassette import parse_request
from fumehood.gateway.dialects import DIALECTS, Dialect
from fumehood.gateway.memory_quota import Held
from fumehood.gateway.refusals import ModelRefusal, refuse


@dataclass(frozen=True, slots=True)
class Question:
    """One request."""

    path: str
    dialect: Dialect
    body: bytes
    """As it came."""
    parsed: JsonObject
    model: str


async def read_question(request: Request, limit_bytes: int, held: Held) -> Question | Response:
    """Return what is asked, or why it is not passed on.

    Args:
        request: from the agent.
        limit_bytes: of its body.
        held: the room that it takes in memory.
    """
    # Not of the URL, which is made of a header that the agent may leave out or make up.
    path: str = request.scope["path"]
    dialect = DIALECTS.get(path)
    if dialect is None or request.method != "POST":
        return refuse(ModelRefusal.MALFORMED, f"there are: {', '.join(DIALECTS)}")
    body = await _read(request, limit_bytes, held)
    if body is None:
        bound = (
            f"a request has at most {limit_bytes} bytes, and those of a seat twice as many together"
        )
        return refuse(ModelRefusal.TOO_LARGE, bound)
    parsed = parse_request(body)
    model = parsed.get("model") if parsed else None
    if parsed is None or not isinstance(model, str):
        return refuse(ModelRefusal.MALFORMED, "a request is one JSON object that names a model")
    return Question(path, dialect, body, parsed, model)


async def _read(request: Request, limit_bytes: int, held: Held) -> bytes | None:
    parts = list[bytes]()
    async for part in request.stream():
        if held.size_bytes + len(part) > limit_bytes or not held.take(len(part)):
            return None
        parts.append(part)
    return b"".join(parts)
