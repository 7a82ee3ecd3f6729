"""Wraps an engine and measures its boxes from the host while they run."""

from __future__ import annotations

import time
from collections.abc import Iterable
from threading import Event, Thread

from fumehood.engines.engine import (
    AgentSource,
    Box,
    BoxSpec,
    Engine,
    Image,
    Isolation,
    IsolationFacts,
    Orphan,
    OwnerCheck,
    Readiness,
)
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
    """Forwards to an engine and measures the box that was started last."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.watch: Watch | None = None
        """The measurement of the box that was started last."""

    @property
    def name(self) -> str:
        """Forward to the engine."""
        return self._engine.name

    @property
    def isolation(self) -> Isolation:
        """Forward to the engine."""
        return self._engine.isolation

    @property
    def unenforced(self) -> tuple[str, ...]:
        """Forward to the engine."""
        return self._engine.unenforced

    def check(self) -> Readiness:
        """Forward to the engine."""
        return self._engine.check()

    @property
    def has_runtimes(self) -> bool:
        """Forward to the engine."""
        return self._engine.has_runtimes

    def isolation_facts(self) -> IsolationFacts:
        """Forward to the engine."""
        return self._engine.isolation_facts()

    def sandboxed_runtimes(self) -> tuple[str, ...]:
        """Forward to the engine."""
        return self._engine.sandboxed_runtimes()

    def prepare(self, source: AgentSource) -> Image:
        """Forward to the engine."""
        return self._engine.prepare(source)

    def start(self, spec: BoxSpec) -> Box:
        """Start a box and its measurement."""
        box = self._engine.start(spec)
        self.watch = Watch(box)
        return box

    def orphans(self, is_owned: OwnerCheck, *, images: bool = False) -> Iterable[Orphan]:
        """Forward to the engine."""
        return self._engine.orphans(is_owned, images=images)

    def remove(self, orphan: Orphan) -> bool:
        """Forward to the engine."""
        return self._engine.remove(orphan)

    def close(self) -> None:
        """Forward to the engine."""
        self._engine.close()
