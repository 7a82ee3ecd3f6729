"""The world and the seat endpoints of one open episode, behind sockets and inline alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Condition, Event, Lock

from fumehood.core.clock import Clock
from fumehood.core.episode import Episode
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.trace import Recorder
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.monitors.review import HEAD_START_MS, MonitorsBroken, RecordedReviewer, Reviewer
from fumehood.service.seat_endpoint import SeatEndpoint, SeatLimits
from fumehood.supervised.stalls import StopMeter, stop_meter
from fumehood.wire.ports import MONITORS_FIELD, SpecRejected


def _recorded(events: tuple[JsonObject, ...]) -> RecordedReviewer:
    try:
        return RecordedReviewer(events)
    except ValueError as error:
        raise SpecError("recorded_decisions", str(error)) from None


class MonotonicClock:
    """The monotonic clock of the host. Stops of this process are left out."""

    def __init__(self, meter: StopMeter | None = None) -> None:
        """Measure the stops with ``meter``; None for the one of this process."""
        self._meter = meter or stop_meter()

    def now_ns(self) -> int:
        """Return nanoseconds since an arbitrary moment, without those of stops."""
        # Read before the time: a stop in between is not subtracted, so the clock never goes back.
        stopped_ns = self._meter.stopped_ns()
        return time.monotonic_ns() - stopped_ns


class OpenEpisode:
    """One episode from its opening to its close. Safe to use from several threads."""

    def __init__(
        self,
        spec: EpisodeSpec,
        recorder: Recorder,
        clock: Clock,
        limits: SeatLimits,
        on_broken: Callable[[SpecRejected], None],
        on_flood: Callable[[SeatEndpoint, str], object] = lambda endpoint, detail: None,
        reviewer: Reviewer | None = None,
        on_granted: Callable[[int], object] = lambda granted_ms: None,
        *,
        is_held: bool = False,
    ) -> None:
        """Build the world, its layers and an endpoint for each seat.

        Args:
            spec: the episode.
            recorder: writes the trace.
            clock: measures wall time, from now on.
            limits: limits of an agent's messages.
            on_broken: called once if the world cannot continue.
            on_flood: called once for a seat whose refused messages are too large together.
            reviewer: asks the monitors that the specification names; None if it names none.
            on_granted: called with the wall time that all seats got back because a monitor decided,
                milliseconds.
            is_held: messages of agents wait until :meth:`begin`.

        Raises:
            InputError: the specification cannot be hosted.
        """
        self._lock = Lock()
        self._closed = False
        self._begun = Event()
        if not is_held:
            self._begun.set()
        harness_mode = HARNESS_MODES.load(spec.harness_mode)()
        self._on_granted = on_granted
        self._granted_ms = self._waited_ns = 0
        if spec.recorded_decisions is not None:
            reviewer = _recorded(spec.recorded_decisions)
        if spec.monitors and reviewer is None:
            raise SpecError(MONITORS_FIELD, "the service was started without monitors")
        # Installed harness modes may have no parameter for monitors.
        monitored = {"reviewer": reviewer} if reviewer is not None and spec.monitors else {}
        try:
            self._episode: Episode = harness_mode.open_episode(spec, recorder, clock, **monitored)
        except MonitorsBroken as error:
            raise SpecError(MONITORS_FIELD, str(error)) from None
        if reviewer is not None:
            reviewer.on_wait = self._credit_wait
        conversation = self._episode.conversation
        self._turn_changed = None if conversation is None else Condition(self._lock)
        self.endpoints = tuple(
            SeatEndpoint(
                seat,
                asks_confidence=seat_spec.asks_confidence,
                recorder=recorder,
                lock=self._lock,
                clock=clock,
                limits=limits,
                on_broken=on_broken,
                on_flood=on_flood,
                turn_changed=self._turn_changed,
                begun=self._begun,
            )
            for seat, seat_spec in zip(self._episode.seats, spec.seats, strict=True)
        )
        if conversation is not None and self._turn_changed is not None:
            conversation.on_change = self._notify_turn
            conversation.wait_for = self._turn_changed.wait_for

    def begin(self) -> None:
        """Let the messages of agents through, if the episode was held."""
        self._begun.set()

    def close(self, *, timed_out: bool) -> bool:
        """End all work and record the final state; return False if it was closed before."""
        for endpoint in self.endpoints:
            endpoint.close(timed_out=timed_out)
        self._begun.set()
        with self._lock:
            if self._closed:
                return False
            self._closed = True
            self._episode.close()
        return True

    def _credit_wait(self, waited_ns: int) -> None:
        """Give all seats the time back in which monitors decided. The caller holds the lock."""
        self._waited_ns += waited_ns
        more_ms = HEAD_START_MS + self._waited_ns // 1_000_000 - self._granted_ms
        if more_ms > 0:
            self._granted_ms += more_ms
            for endpoint in self.endpoints:
                endpoint.credit(more_ms)
            self._on_granted(more_ms)

    def _notify_turn(self) -> None:
        for endpoint in self.endpoints:
            endpoint.update_turn()
        if self._turn_changed is not None:
            self._turn_changed.notify_all()
