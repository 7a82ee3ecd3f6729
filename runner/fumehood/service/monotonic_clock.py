"""The host's own clock, for the one room that may read it."""

from __future__ import annotations

import time


class MonotonicClock:
    """Nanoseconds since some moment; never goes back."""

    def now_ns(self) -> int:
        """Return nanoseconds; only differences mean anything."""
        return time.monotonic_ns()
