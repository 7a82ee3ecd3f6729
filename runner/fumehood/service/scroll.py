"""The trace of an episode that is sent when it is over."""

from __future__ import annotations

import time

from fumehood.core.json_values import canonical_json
from fumehood.core.trace import Chain, Event, Record


class Scroll:
    """A recorder that keeps everything until the end. For one thread."""

    def __init__(self) -> None:
        self._chain = Chain()
        self._records: list[Record] = []

    def record(self, event: Event, duration_ns: int = 0) -> None:
        """Write one event down, stamped with the time of day."""
        self._link(canonical_json(event.to_json()), duration_ns // 1000)

    def sealed(self) -> tuple[Record, ...]:
        """Seal what was written and return all of it; once."""
        self._link(self._chain.seal(), 0)
        return tuple(self._records)

    def _link(self, event_json: str, duration_us: int) -> None:
        wall_ms = time.time_ns() // 1_000_000
        self._records.append(Record(event_json, self._chain.link(event_json), wall_ms, duration_us))
