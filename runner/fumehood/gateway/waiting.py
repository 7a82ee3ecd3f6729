"""The time that a seat gets back because it waited for a provider and did nothing else."""

from __future__ import annotations

import math
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from operator import itemgetter


@dataclass(frozen=True, slots=True)
class Activity:
    """The messages of a seat that are not model requests."""

    begun: int
    """Number so far."""
    running: int
    """Number of those that are not answered yet."""


class Spans:
    """A union of spans of time."""

    def __init__(self) -> None:
        self._spans = list[tuple[int, int]]()
        """Start and end of each span, without overlaps, in order."""

    def add(self, began_ms: int, ended_ms: int) -> int:
        """Add a span and return by how many milliseconds the union has grown.

        Args:
            began_ms: start, on the same clock for all spans.
            ended_ms: end, not before the start.
        """
        # Spans end in the order in which they start, and most new ones are the last.
        first = bisect_left(self._spans, began_ms, key=itemgetter(1))
        after = bisect_right(self._spans, ended_ms, lo=first, key=itemgetter(0))
        within = self._spans[first:after]
        known_ms = sum(end - start for start, end in within)
        if within:
            began_ms, ended_ms = min(began_ms, within[0][0]), max(ended_ms, within[-1][1])
        self._spans[first:after] = [(began_ms, ended_ms)]
        return ended_ms - began_ms - known_ms


class WaitCredit:
    """Computes the credit of one seat. For one event loop.

    A wait of a request counts only if the seat made no tool call since the request began, and only
    outside the attempts of other requests that succeeded. Parallel waits count once.
    """

    def __init__(self, activity: Callable[[], Activity], grant: Callable[[int], None]) -> None:
        """Create it.

        Args:
            activity: returns the current activity of the seat.
            grant: receives each credit, milliseconds.
        """
        self._activity = activity
        self._grant = grant
        self._counted = Spans()
        self._waits = list[tuple[int, int]]()
        """Waits that overlap an attempt whose end is not known."""
        self._attempts: dict[Hashable, int] = {}
        """Start of each running attempt, by request."""

    def begin(self) -> Activity:
        """Return the activity at the beginning of a request."""
        return self._activity()

    def wait(self, at_beginning: Activity, began_ms: int, ended_ms: int) -> None:
        """Credit a wait of a request.

        Args:
            at_beginning: from :meth:`begin`, when the request began.
            began_ms: start of the wait, on the monotonic clock.
            ended_ms: its end.
        """
        if ended_ms > began_ms and not at_beginning.running and self._activity() == at_beginning:
            self._waits.append((began_ms, ended_ms))
            self._settle()

    def attempt(self, request: Hashable, began_ms: int) -> None:
        """Note that an attempt of a request began."""
        self._attempts[request] = began_ms

    def failed(self, request: Hashable) -> None:
        """Note that the attempt of a request failed, so that it was a wait."""
        self._attempts.pop(request, None)
        self._settle()

    def ended(self, request: Hashable) -> None:
        """Note that a request ended; its last attempt was work."""
        began_ms = self._attempts.pop(request, None)
        if began_ms is not None:
            self._counted.add(began_ms, time.monotonic_ns() // 1_000_000)
        self._settle()

    def _settle(self) -> None:
        known_until_ms = min(self._attempts.values(), default=math.inf)
        waits, self._waits = self._waits, []
        granted_ms = 0
        for began_ms, ended_ms in waits:
            if began_ms < known_until_ms:
                granted_ms += self._counted.add(began_ms, int(min(ended_ms, known_until_ms)))
            if ended_ms > known_until_ms:
                self._waits.append((int(max(began_ms, known_until_ms)), ended_ms))
        if granted_ms:
            self._grant(granted_ms)
