"""The world and the seat endpoints of one open episode, behind sockets and inline alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Condition, Lock

from fumehood.core.clock import Clock
from fumehood.core.episode import Episode
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.trace import Recorder
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.service.seat_endpoint import SeatEndpoint, SeatLimits
from fumehood.supervised.stalls import StopMeter, stop_meter
from fumehood.wire.ports import SpecRejected


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
    ) -> None:
        """Build the world, its layers and an endpoint for each seat.

        Args:
            spec: the episode.
            recorder: writes the trace.
            clock: measures wall time, from now on.
            limits: limits of an agent's messages.
            on_broken: called once if the world cannot continue.
            on_flood: called once for a seat whose refused messages are too large together.

        Raises:
            InputError: the specification cannot be hosted.
        """
        self._lock = Lock()
        self._closed = False
        harness_mode = HARNESS_MODES.load(spec.harness_mode)()
        self._episode: Episode = harness_mode.open_episode(spec, recorder, clock)
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
            )
            for seat, seat_spec in zip(self._episode.seats, spec.seats, strict=True)
        )
        if conversation is not None and self._turn_changed is not None:
            conversation.on_change = self._notify_turn
            conversation.wait_for = self._turn_changed.wait_for

    def close(self, *, timed_out: bool) -> bool:
        """End all work and record the final state; return False if it was closed before."""
        for endpoint in self.endpoints:
            endpoint.close(timed_out=timed_out)
        with self._lock:
            if self._closed:
                return False
            self._closed = True
            self._episode.close()
        return True

    def _notify_turn(self) -> None:
        for endpoint in self.endpoints:
            endpoint.update_turn()
        if self._turn_changed is not None:
            self._turn_changed.notify_all()
