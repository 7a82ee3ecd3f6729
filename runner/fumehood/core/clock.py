"""The clock that is passed in."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """A source of times."""

    def now_ns(self) -> int:
        """Return nanoseconds of a monotonic clock. Only differences are meaningful."""
        ...


class StoppedClock:
    """A clock that never advances."""

    def now_ns(self) -> int:
        """Return 0."""
        return 0
