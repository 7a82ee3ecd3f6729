"""Starts as many boxes at once as give the highest start rate on this machine, and no more.

Boxes that start at once compete for processors, for locks of the kernel, and for a daemon. How many
are best depends on the machine, its load and the engine, so it is measured while boxes start.
"""

from __future__ import annotations

import time
from threading import Condition

FIRST, MOST = 4, 64
"""Starts at once in the beginning, and at most."""
STARTS_MIN = 8
"""Starts of one measurement, and at least twice as many as are starting at once."""
SAME = 0.95
"""Share of the highest rate from which a rate counts as equally high."""
REVISIT = 8
"""Measurements in a row at one number, after which its neighbours are measured again."""


class StartRate:
    """Chooses the number of starts at once from the rates that it measures. Not thread-safe.

    It compares the current number with its half and its double, and takes the smallest one whose
    rate is as high as the highest.
    """

    def __init__(self) -> None:
        self.limit = FIRST
        """Starts at once."""
        self._rates: dict[int, float] = {}
        """Starts per second, as last measured, by number at once."""
        self._stays = self._count = self._skipped = 0
        self._since_s = 0.0

    def ended(self, now_s: float, *, is_full: bool) -> None:
        """Count a start that has ended.

        Args:
            now_s: time on a monotonic clock, seconds.
            is_full: whether another start waits. Otherwise the rate shows the demand.
        """
        if not is_full:
            self._reset(None)
            return
        if self._skipped < self.limit:
            # These began with another number at once, or without demand.
            self._skipped += 1
            self._since_s = now_s
            return
        self._count += 1
        if self._count < max(STARTS_MIN, 2 * self.limit) or now_s <= self._since_s:
            return
        self._rates[self.limit] = self._count / (now_s - self._since_s)
        chosen = self._choose()
        if chosen == self.limit:
            self._stays += 1
            self._reset(now_s)
        else:
            self.limit, self._stays = chosen, 0
            self._reset(None)

    def _reset(self, since_s: float | None) -> None:
        self._count, self._since_s = 0, since_s or 0.0
        self._skipped = 0 if since_s is None else self.limit

    def _choose(self) -> int:
        neighbours = [n for n in (self.limit // 2, 2 * self.limit) if 1 <= n <= MOST]
        if self._stays >= REVISIT:
            self._stays = 0
            for number in neighbours:
                self._rates.pop(number, None)
        known = sorted(number for number in (*neighbours, self.limit) if number in self._rates)
        enough = SAME * max(self._rates[number] for number in known)
        best = next(number for number in known if self._rates[number] >= enough)
        if best != self.limit:
            return best
        # The double first, because too few at once cost more than too many.
        return next((n for n in reversed(neighbours) if n not in self._rates), best)


class StartLimit:
    """A context in which a box starts; entering waits for its turn. Safe to use from several
    threads."""

    def __init__(self) -> None:
        self._rate = StartRate()
        self._turn = Condition()
        self._starting = self._waiting = 0

    def __enter__(self) -> None:
        with self._turn:
            self._waiting += 1
            try:
                self._turn.wait_for(lambda: self._starting < self._rate.limit)
            finally:
                self._waiting -= 1
            self._starting += 1

    def __exit__(self, *_: object) -> None:
        with self._turn:
            self._starting -= 1
            self._rate.ended(time.monotonic(), is_full=self._waiting > 0)
            # Not all: a start beyond the limit would only wait again.
            self._turn.notify(max(1, self._rate.limit - self._starting))
