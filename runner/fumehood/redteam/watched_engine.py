"""Wraps an engine and measures its boxes from the host while they run."""

from __future__ import annotations

import time
from threading import Event, Thread

from fumehood.engines.engine import Box, BoxSpec, BoxStarter
from fumehood.redteam.box_usage import Usage, measure

INTERVAL_S = 0.05
"""Time between two measurements."""


class Watch:
    """The peak usage of one box, and its processes."""

    def __init__(self, box: Box) -> None:
        """Start measuring."""
        self.tasks_max = 0
        self.memory_bytes_max = 0
        self.cpu_ms = 0
        self.members: set[tuple[int, int]] = set()
        """Process ID and start time of every process that was seen in the box."""
        self.measurements = 0
        """Number of successful measurements."""
        self._box = box
        self._started = time.monotonic()
        self._last_seen = self._started
        self._stop = Event()
        self._thread = Thread(target=self._measure, name="box-watch", daemon=True)
        self._thread.start()

    @property
    def seconds(self) -> float:
        """Time from the start to the last successful measurement."""
        return self._last_seen - self._started

    def end(self) -> None:
        """Stop measuring."""
        self._stop.set()
        self._thread.join()

    def _measure(self) -> None:
        pid = self._box.host_pid()
        while pid is not None and not self._stop.wait(INTERVAL_S):
            usage = measure(pid)
            if usage is not None:
                self._record(usage)

    def _record(self, usage: Usage) -> None:
        self.measurements += 1
        self._last_seen = time.monotonic()
        self.tasks_max = max(self.tasks_max, usage.tasks)
        self.memory_bytes_max = max(self.memory_bytes_max, usage.memory_bytes)
        self.cpu_ms = max(self.cpu_ms, usage.cpu_ms)
        self.members |= usage.members


class WatchedEngine:
    """Starts boxes of an engine, and measures the one that was started last."""

    def __init__(self, engine: BoxStarter) -> None:
        self._engine = engine
        self.watch: Watch | None = None
        """The measurement of the box that was started last."""

    def start(self, spec: BoxSpec) -> Box:
        """Start a box and its measurement."""
        box = self._engine.start(spec)
        self.watch = Watch(box)
        return box
