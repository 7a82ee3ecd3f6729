"""Works through a long list of items in threads and returns the results in batches.

Results come in batches, because writing many rows durably costs as much as writing one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Generic, TypeVar

from fumehood.core.errors import InfraError

W = TypeVar("W")
R = TypeVar("R")

QUEUED_MAX = 64
"""Items that wait for a thread; limits the items taken from a long list."""
LOOK_S = 0.1
"""Interval at which a wait for results looks around."""


class EpisodeExecutor(Generic[W, R]):
    """A bounded queue before a pool of threads. Not thread-safe."""

    def __init__(
        self,
        size: int,
        work: Callable[[W], R],
        items: Iterable[W],
        while_waiting: Callable[[], None] = lambda: None,
    ) -> None:
        """Create the executor; :meth:`batches` starts the work.

        Args:
            size: number of threads.
            work: processes one item. An exception ends all processing.
            items: taken as threads become free, so the list may be long.
            while_waiting: called repeatedly during a wait for results; an exception of it ends
                the wait.
        """
        self._work = work
        self._while_waiting = while_waiting
        self._items = iter(items)
        self._pending_max = min(size + QUEUED_MAX, sys.maxsize)
        self._threads = ThreadPoolExecutor(size, "episode")
        self._pending: dict[Future[R], W] = {}

    def batches(self) -> Iterator[list[R]]:
        """Yield results as they are done, until all items are done.

        Raises:
            Exception: ``work``, the list of items or ``while_waiting`` raised it. Earlier results
                have been yielded.
            InfraError: this machine starts no further thread.
        """
        self._take_items()
        while self._pending:
            done = self._wait_for_some()
            self._take_items()
            yield from _results(done)
            for future in done:
                future.result()
        self._threads.shutdown()

    def rest(self) -> Iterator[list[R]]:
        """Start no further item, and return the results of the items that have started."""
        # This also cancels an item whose thread could not be started, which is in no other list.
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._pending = {
            future: self._pending[future] for future in self._pending if not future.cancelled()
        }
        return self._remaining()

    def _remaining(self) -> Iterator[list[R]]:
        while self._pending:
            yield from _results(self._wait_for_some())
        self._threads.shutdown()

    def _take_items(self) -> None:
        for item in islice(self._items, self._pending_max - len(self._pending)):
            try:
                self._pending[self._threads.submit(self._work, item)] = item
            except RuntimeError as error:
                raise InfraError(
                    f"this machine cannot work on {len(self._pending) + 1} episodes at once "
                    f"({error}): use a lower --concurrency or --prepare, or raise its limits of "
                    "processes and memory"
                ) from error

    def _wait_for_some(self) -> list[Future[R]]:
        done: set[Future[R]] = set()
        while not done:
            self._while_waiting()
            done, _ = wait(self._pending, LOOK_S, FIRST_COMPLETED)
        finished = [future for future in self._pending if future in done]
        for future in finished:
            del self._pending[future]
        return finished


def _results(done: Iterable[Future[R]]) -> Iterator[list[R]]:
    """Yield the results as one batch; nothing if every item raised."""
    results = [future.result() for future in done if future.exception() is None]
    if results:
        yield results
