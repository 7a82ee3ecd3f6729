"""The boxes of one episode: one a seat, started when the seat is called."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Thread

from fumehood.core.errors import InfraError, InputError
from fumehood.core.outcome import Infra, InfraKind
from fumehood.engines.engine import Box, BoxOutput, BoxSpec, Engine, Exit
from fumehood.orchestrator.trace_receiver import TraceReceiver


class SeatBoxes:
    """Starts boxes and waits for their end; knows nothing of what is said in them."""

    def __init__(
        self, engine: Engine, boxes: Mapping[str, BoxSpec], watcher: TraceReceiver
    ) -> None:
        """Start nothing yet.

        Args:
            engine: makes boxes.
            boxes: by seat, in the order of the seats.
            watcher: says when a box is to start and ends it.
        """
        self.infra: Infra | None = None
        """What failed on our side; None when nothing did."""
        self.timed_out = False
        """Whether a box had to be stopped because its time was over."""
        self.broke_off: str | None = None
        """The seat whose box ended before its work had; None where none did, or all were stopped."""
        self._engine = engine
        self._boxes = boxes
        self._watcher = watcher
        self._exits: dict[str, Exit | None] = {}
        self._outputs: dict[str, BoxOutput] = {}
        self._refused: InputError | None = None
        self._threads: list[Thread] = []

    def play(self, wall_ms: int) -> None:
        """Run the boxes; return when the episode is over, though boxes of several may still have to go.

        Args:
            wall_ms: wall time of each box, milliseconds.

        Raises:
            InputError: no box can be started from what the user named.
        """
        if len(self._boxes) == 1:
            self._sit(next(iter(self._boxes)), wall_ms)
            self._complain()
            return
        for name in self._watcher.called():
            thread = Thread(target=self._sit_among_others, args=(name, wall_ms), daemon=True)
            self._threads.append(thread)
            thread.start()
        if self._watcher.all_work_ended:
            # An answer may be on its way still; who does not leave with it is made to.
            self._join()

    def leave(self) -> None:
        """Wait until every box is gone; the episode must have been closed.

        Raises:
            InputError: no box could be started from what the user named.
        """
        self._join()
        self._complain()

    @property
    def exit(self) -> Exit | None:
        """How the box ended that broke off, else that of the first seat; None when it had to be stopped."""
        return self._exits.get(self.broke_off or next(iter(self._boxes)))

    @property
    def output(self) -> BoxOutput | None:
        """What the boxes printed, seat by seat, last the one that broke off; None when there was no box."""
        names = sorted(self._boxes, key=lambda name: name == self.broke_off)
        outputs = [(name, self._outputs[name]) for name in names if name in self._outputs]
        if len(self._boxes) == 1 or not outputs:
            return outputs[0][1] if outputs else None
        return BoxOutput(
            b"".join(_titled(name, output.stdout) for name, output in outputs),
            b"".join(_titled(name, output.stderr) for name, output in outputs),
            sum(output.stdout_bytes for _, output in outputs),
            sum(output.stderr_bytes for _, output in outputs),
        )

    def _sit_among_others(self, name: str, wall_ms: int) -> None:
        self._sit(name, wall_ms)
        if self._watcher.breaks_off(name) and self.broke_off is None:
            self.broke_off = name

    def _sit(self, name: str, wall_ms: int) -> None:
        try:
            self._exits[name] = self._run(name, wall_ms)
            self.timed_out = self.timed_out or self._exits[name] is None
        except InfraError as error:
            self.infra = Infra(InfraKind.ENGINE, str(error))
        except InputError as error:
            self._refused = error

    def _run(self, name: str, wall_ms: int) -> Exit | None:
        """Start a box and wait for its end, at most its time; whatever happens, the box is removed."""
        box = self._engine.start(self._boxes[name])
        try:
            self._watcher.watch_over(name, box)
            return self._wait(box, wall_ms)
        finally:
            self._outputs[name] = box.close()

    def _wait(self, box: Box, wall_ms: int) -> Exit | None:
        """Wait for the end of a box, for as long as it has, and then for as long as it was kept waiting."""
        ended, given_ms = box.wait(wall_ms), 0
        while ended is None and self._watcher.granted_ms > given_ms:
            more_ms = self._watcher.granted_ms - given_ms
            given_ms += more_ms
            ended = box.wait(more_ms)
        return ended

    def _join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _complain(self) -> None:
        if self._refused is not None:
            raise self._refused


def _titled(name: str, text: bytes) -> bytes:
    return b"--- seat %s ---\n%s\n" % (name.encode(), text.rstrip(b"\n")) if text else b""
