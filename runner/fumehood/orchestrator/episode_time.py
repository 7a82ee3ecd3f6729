"""When an episode begins, and the delays that it is not charged for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from threading import Lock

from fumehood.core.trace import Record
from fumehood.orchestrator.stalls import Stalls

AwaitSlot = Callable[[], object]
"""Returns when an episode may begin, or raises ``InfraError``."""


class EpisodeTime:
    """The time of one episode. Safe to use from several threads."""

    def __init__(
        self,
        begun_s: float,
        stalls: Stalls | None = None,
        await_slot: AwaitSlot | None = None,
        on_begin: Callable[[], object] = lambda: None,
    ) -> None:
        """Create it.

        Args:
            begun_s: monotonic time from which the episode is charged, unless it waits for a slot.
            stalls: of the processes of Fumehood; None if the episode has none.
            await_slot: None if the episode begins at once.
            on_begin: called in the slot.
        """
        self.begun_s = begun_s
        self._stalls = stalls
        self._stopped_before_ms = stalls.stopped_ms() if stalls else 0
        self._await_slot = await_slot
        self._on_begin = on_begin
        self._wall_ms = 0
        self._lock = Lock()

    def begin(self) -> None:
        """Wait for the slot of the episode if it has not begun.

        Raises:
            InfraError: it does not begin.
        """
        with self._lock:
            if self._await_slot is None:
                return
            self._await_slot()
            self._await_slot = None
            self.begun_s, self._wall_ms = time.monotonic(), time.time_ns() // 1_000_000
            self._stopped_before_ms = self._stalls.stopped_ms() if self._stalls else 0
            self._on_begin()

    def delayed_ms(self) -> int:
        """Return for how long the processes of Fumehood were delayed so far."""
        return self._stalls.delayed_ms() if self._stalls else 0

    def stopped_ms(self) -> int:
        """Return for how long a process of Fumehood was stopped since the episode began."""
        return self._stalls.stopped_ms() - self._stopped_before_ms if self._stalls else 0

    def not_before(self, records: Iterable[Record]) -> tuple[Record, ...]:
        """Return records whose times are not before the beginning, so that no wait counts as
        work."""
        return tuple(
            record if record.wall_ms >= self._wall_ms else record._replace(wall_ms=self._wall_ms)
            for record in records
        )
