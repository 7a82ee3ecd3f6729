"""Reading what somebody sends, up to a bound."""

from __future__ import annotations

from starlette.requests import Request


class TooLarge(Exception):
    """A body is longer than its bound."""


async def read_body(request: Request, limit_bytes: int) -> bytes:
    """Return a request's body.

    Raises:
        TooLarge: it is longer than ``limit_bytes``; what was too much is not read.
    """
    parts, size = list[bytes](), 0
    async for part in request.stream():
        size += len(part)
        if size > limit_bytes:
            raise TooLarge
        parts.append(part)
    return b"".join(parts)
