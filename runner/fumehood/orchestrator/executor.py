"""Works through a long list of items in threads and returns the results in batches.

Batches, because writing many rows durably costs as much as writing one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Generic, TypeVar

W = TypeVar("W")
R = TypeVar("R")

QUEUED_MAX = 64
"""Items that wait for a thread; bounds what is taken from a long list."""


class EpisodeExecutor(Generic[W, R]):
    """A bounded queue before a pool of threads. To be used from one thread."""

    def __init__(self, size: int, work: Callable[[W], R], items: Iterable[W]) -> None:
        """Begin nothing yet.

        Args:
            size: threads.
            work: does one item. An exception ends the whole work.
            items: taken as threads become free, so the list may be long.
        """
        self._work = work
        self._items = iter(items)
        self._in_hand_max = size + QUEUED_MAX
        self._threads = ThreadPoolExecutor(size, "episode")
        self._in_hand: list[Future[R]] = []

    def batches(self) -> Iterator[list[R]]:
        """Yield results as they are done, until all items are done.

        Raises:
            Exception: ``work`` or the list of items raised it. Earlier results have been yielded.
        """
        self._take_items()
        while self._in_hand:
            done = self._wait_for_some()
            self._take_items()
            yield from _results(done)
            for future in done:
                future.result()
        self._threads.shutdown()

    def rest(self) -> Iterator[list[R]]:
        """Begin no further item from now on; return the results of the items that are begun."""
        self._in_hand = [future for future in self._in_hand if not future.cancel()]
        return self._remaining()

    def _remaining(self) -> Iterator[list[R]]:
        while self._in_hand:
            yield from _results(self._wait_for_some())
        self._threads.shutdown()

    def _take_items(self) -> None:
        for item in islice(self._items, self._in_hand_max - len(self._in_hand)):
            self._in_hand.append(self._threads.submit(self._work, item))

    def _wait_for_some(self) -> list[Future[R]]:
        done, _ = wait(self._in_hand, return_when=FIRST_COMPLETED)
        finished = [future for future in self._in_hand if future in done]
        self._in_hand = [future for future in self._in_hand if future not in done]
        return finished


def _results(done: Iterable[Future[R]]) -> Iterator[list[R]]:
    """Yield the results as one batch; nothing if every item raised."""
    results = [future.result() for future in done if future.exception() is None]
    if results:
        yield results
