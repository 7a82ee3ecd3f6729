"""Threads that take work one piece at a time and hand over what came of it in batches.

In batches, because writing results down for good costs as much for many as for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from queue import Empty, Queue
from threading import Lock, Thread
from typing import Generic, TypeVar

W = TypeVar("W")
R = TypeVar("R")

RESULTS_WAITING = 256
"""Nobody takes more work while so many results have not been taken over."""


class _Gone:
    """Put among the results by a thread that takes no more work."""


class EpisodeExecutor(Generic[W, R]):
    """Works through what is waiting, several pieces at once."""

    def __init__(self, size: int, work: Callable[[W], R], waiting: Iterable[W]) -> None:
        """Start working.

        Args:
            size: threads.
            work: does one piece; what it raises ends the whole work.
            waiting: taken one by one, so it may be long.
        """
        self._work = work
        self._waiting = iter(waiting)
        self._taking = Lock()
        self._results: Queue[R | BaseException | _Gone] = Queue(RESULTS_WAITING)
        self._at_work = size
        self._stopped = False
        for _ in range(size):
            Thread(target=self._take_and_work, name="episode", daemon=True).start()

    def batches(self) -> Iterator[list[R]]:
        """Yield what has come of the work, in the order in which it was done, until all of it is done.

        Raises:
            Exception: what ``work`` raised.
        """
        while self._at_work:
            results, problem = self._take_over()
            if results:
                yield results
            if problem is not None:
                raise problem

    def rest(self) -> Iterator[list[R]]:
        """Let nobody take more work, and yield what comes of the pieces that are begun."""
        self._stopped = True
        while self._at_work:
            results, _ = self._take_over()
            if results:
                yield results

    def _take_over(self) -> tuple[list[R], BaseException | None]:
        results: list[R] = []
        problem: BaseException | None = None
        for result in self._those_there():
            if isinstance(result, _Gone):
                self._at_work -= 1
            elif isinstance(result, BaseException):
                problem = problem or result
            else:
                results.append(result)
        return results, problem

    def _those_there(self) -> Iterator[R | BaseException | _Gone]:
        """Yield the next result, whenever it comes, and those that are there by then."""
        yield self._results.get()
        try:
            while True:
                yield self._results.get_nowait()
        except Empty:
            return

    def _take_and_work(self) -> None:
        try:
            while (taken := self._take()) is not None:
                self._results.put(self._work(taken[0]))
        except BaseException as problem:
            self._stopped = True
            self._results.put(problem)
        self._results.put(_Gone())

    def _take(self) -> tuple[W] | None:
        with self._taking:
            if self._stopped:
                return None
            for piece in self._waiting:
                return (piece,)
            return None
