"""Reads request bodies up to a limit, and executes the calls of a seat one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from starlette.requests import Request

T = TypeVar("T")


class TooLarge(Exception):
    """A request body is longer than its limit."""


async def read_body(request: Request, limit_bytes: int) -> bytes:
    """Return the body of a request.

    Raises:
        TooLarge: it is longer than ``limit_bytes``; the rest is not read.
    """
    parts, size = list[bytes](), 0
    async for part in request.stream():
        size += len(part)
        if size > limit_bytes:
            raise TooLarge
        parts.append(part)
    return b"".join(parts)


class CallQueue:
    """Executes one call at a time in a thread: a seat occupies at most one shared thread."""

    def __init__(self, threads: Executor) -> None:
        self._threads = threads
        self._lock = asyncio.Lock()

    async def execute(self, call: Callable[[], T]) -> T:
        """Return what ``call`` returns, after the calls before it."""
        async with self._lock:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
