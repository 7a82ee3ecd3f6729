"""The boxes of one episode: one per seat, started when the seat can act."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Thread

from fumehood.core.errors import InfraError, InputError
from fumehood.core.outcome import Infra, InfraKind
from fumehood.engines.engine import Box, BoxOutput, BoxSpec, Exit
from fumehood.orchestrator.episode_time import EpisodeTime
from fumehood.orchestrator.seat_exit import SeatExit
from fumehood.orchestrator.trace_receiver import TraceReceiver

IDLE_MS_MAX = 30_000
"""How long an episode may have no running box until its next seat can act. The service reports the
next seat within a second."""


@dataclass(frozen=True, slots=True)
class SeatBox:
    """The box of one seat."""

    spec: BoxSpec
    start: Callable[[BoxSpec], Box]
    """As of an engine."""
    is_counterpart: bool = False
    """Whether it has another agent than the tested one. If it ends early before a box of the tested
    agent has started, the infrastructure failed."""


class SeatBoxes:
    """Starts boxes and waits for their end. Not thread-safe."""

    def __init__(
        self, boxes: Mapping[str, SeatBox], receiver: TraceReceiver, times: EpisodeTime
    ) -> None:
        """Create it; :meth:`play` starts the boxes.

        Args:
            boxes: by seat, in the order of the seats.
            receiver: reports when a box is to start, and ends boxes.
            times: of the episode; the wall time of a box begins with it, and excludes delays.
        """
        self.timed_out = False
        """Whether a box was stopped because its wall time was over."""
        self.ended_early: str | None = None
        """The seat whose box ended before its work had ended; None if there is none."""
        self.infra: Infra | None = None
        """The failure of the infrastructure; None if there was none."""
        self._has_agent_started = False
        """Whether a box of the tested agent was started. It can take over the process of its
        episode, and so break a counterpart without a trace of it."""
        self._boxes = boxes
        self._receiver = receiver
        self._times = times
        self._exits: dict[str, Exit | None] = {}
        self._outputs: dict[str, BoxOutput] = {}
        self._input_error: InputError | None = None
        self._threads: list[Thread] = []
        self._idle_since_ms: float | None = None

    def play(self, wall_ms: int) -> None:
        """Run the boxes until the episode is over; with several seats, boxes may run on.

        Args:
            wall_ms: wall time of each box, milliseconds.

        Raises:
            InputError: no box can be started from the agent that the user named.
        """
        if len(self._boxes) == 1:
            self._run_seat(next(iter(self._boxes)), wall_ms)
            self._raise_input_error()
            return
        for seat in self._receiver.seats_to_start(self._has_stopped):
            thread = Thread(target=self._run_one_of_several, args=(seat, wall_ms), daemon=True)
            self._threads.append(thread)
            thread.start()
        if self._receiver.all_work_ended:
            # An agent may still read its last answer; the receiver ends boxes that continue.
            self._join()

    def wait_for_end(self) -> None:
        """Wait until every box is gone; the episode must have been closed.

        Raises:
            InputError: no box could be started from the agent that the user named.
        """
        self._join()
        self._raise_input_error()

    @property
    def exit(self) -> Exit | None:
        """Exit of the box that ended early, or of the first seat's; None if it was stopped."""
        box_exit = self._exits.get(self.ended_early or next(iter(self._boxes)))
        if box_exit is None or self.ended_early is None:
            return box_exit
        return SeatExit(box_exit.code, box_exit.reason, self.ended_early)

    @property
    def output(self) -> BoxOutput | None:
        """The output of the boxes by seat, the box that ended early last; None if no box ran."""
        names = sorted(self._boxes, key=lambda name: name == self.ended_early)
        outputs = [(name, self._outputs[name]) for name in names if name in self._outputs]
        if len(self._boxes) == 1 or not outputs:
            return outputs[0][1] if outputs else None
        return BoxOutput(
            b"".join(_titled(name, output.stdout) for name, output in outputs),
            b"".join(_titled(name, output.stderr) for name, output in outputs),
            sum(output.stdout_bytes for _, output in outputs),
            sum(output.stderr_bytes for _, output in outputs),
        )

    def _run_one_of_several(self, seat: str, wall_ms: int) -> None:
        self._run_seat(seat, wall_ms)
        may_be_broken = self._has_agent_started
        if self._receiver.ended_early(seat) and self.ended_early is None:
            self.ended_early, box_exit = seat, self._exits.get(seat)
            is_counterpart = self._boxes[seat].is_counterpart
            if box_exit is not None and is_counterpart and not may_be_broken:
                self.infra = self.infra or counterpart_failure(seat, box_exit)

    def _has_stopped(self) -> bool:
        """Return whether no box has run for too long, without the time for which Fumehood was
        delayed."""
        if any(thread.is_alive() for thread in self._threads):
            self._idle_since_ms = None
            return False
        now_ms = time.monotonic() * 1000 - self._times.delayed_ms()
        if self._idle_since_ms is None:
            self._idle_since_ms = now_ms
        return now_ms - self._idle_since_ms > IDLE_MS_MAX

    def _run_seat(self, seat: str, wall_ms: int) -> None:
        try:
            self._exits[seat] = self._run_box(seat, wall_ms)
            self.timed_out = self.timed_out or self._exits[seat] is None
        except InfraError as error:
            self.infra = Infra(InfraKind.ENGINE, str(error))
        except InputError as error:
            self._input_error = error

    def _run_box(self, seat: str, wall_ms: int) -> Exit | None:
        """Start a box, wait until it ends, at most its wall time once the episode has begun, and
        remove it."""
        seat_box = self._boxes[seat]
        if not seat_box.is_counterpart:
            self._has_agent_started = True
        box = seat_box.start(seat_box.spec)
        try:
            self._receiver.add_box(seat, box)
            self._times.begin()
            return self._wait(box, wall_ms)
        finally:
            self._outputs[seat] = box.close()

    def _wait(self, box: Box, wall_ms: int) -> Exit | None:
        """Return the exit of a box; None if it runs after its wall time, the time granted to its
        seat, and the delays of the processes of Fumehood."""
        delayed_before_ms = self._times.delayed_ms()
        box_exit, waited_ms = box.wait(wall_ms), wall_ms
        while box_exit is None:
            delayed_ms = self._times.delayed_ms() - delayed_before_ms
            more_ms = wall_ms + self._receiver.granted_ms + delayed_ms - waited_ms
            if more_ms <= 0:
                break
            waited_ms += more_ms
            box_exit = box.wait(more_ms)
        return box_exit

    def _join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _raise_input_error(self) -> None:
        if self._input_error is not None:
            raise self._input_error


def counterpart_failure(seat: str, box_exit: Exit) -> Infra:
    """Return the failure of an episode in which a counterpart ended before the agent began.

    Args:
        seat: of the counterpart.
        box_exit: how it ended.
    """
    detail = f"seat {seat}: {box_exit.reason.value}, exit status {box_exit.code}"
    return Infra(InfraKind.COUNTERPART, detail)


def _titled(seat: str, text: bytes) -> bytes:
    return b"--- seat %s ---\n%s\n" % (seat.encode(), text.rstrip(b"\n")) if text else b""
