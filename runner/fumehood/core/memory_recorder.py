"""A recorder that keeps all events in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator

from fumehood.core.json_values import JsonObject, canonical_json
from fumehood.core.trace import Event


class MemoryRecorder:
    """Keeps events in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event, duration_ns: int = 0) -> None:
        """Keep one event."""
        self.events.append(event)

    def written(self) -> Iterator[JsonObject]:
        """Yield each event as a trace holds it: serialized and parsed again."""
        for event in self.events:
            yield json.loads(canonical_json(event.to_json()))
