"""Time, handed in."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Where times come from."""

    def now_ns(self) -> int:
        """Return nanoseconds of a clock that never goes back; only differences mean anything."""
        ...


class StoppedClock:
    """A clock that stands still, for whatever must not depend on time."""

    def now_ns(self) -> int:
        """Return 0, always."""
        return 0
