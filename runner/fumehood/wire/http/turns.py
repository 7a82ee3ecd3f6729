"""Calls of one seat, one after the other, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

T = TypeVar("T")


class Turns:
    """Carries out one thing at a time in a thread; a seat never holds more than one of the shared threads."""

    def __init__(self, threads: Executor) -> None:
        self._threads = threads
        self._lock = asyncio.Lock()

    async def take(self, work: Callable[[], T]) -> T:
        """Return what ``work`` returns, when its turn has come."""
        async with self._lock:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
