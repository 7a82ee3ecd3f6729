"""One event loop in a thread of its own, for all the HTTP sockets of a process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs what is handed to it until it is stopped. Safe to use from several threads."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run, name="http", daemon=True)
        self._thread.start()

    def soon(self, work: Callable[[], object]) -> None:
        """Let the loop call ``work``; returns at once."""
        self.loop.call_soon_threadsafe(work)

    def wait_for(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """Return what ``work`` returns in the loop.

        Raises:
            TimeoutError: it takes longer than ``timeout_s`` seconds.
        """
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout_s)

    def stop(self) -> None:
        """Break off whatever is still running and end the thread."""
        self.soon(self.loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()
