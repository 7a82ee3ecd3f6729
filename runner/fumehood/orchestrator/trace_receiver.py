"""Reads what a service streams of one episode, and ends boxes whose work is over."""

from __future__ import annotations

from collections.abc import Iterator
from queue import SimpleQueue
from threading import Event, Lock, Thread, Timer

from fumehood.core.errors import InfraError
from fumehood.core.outcome import Infra, InfraKind
from fumehood.core.trace import ModelExchange, Record
from fumehood.engines.engine import Box
from fumehood.wire.ports import (
    MODELS_FIELD,
    EpisodeMessage,
    Opened,
    Records,
    SeatCalled,
    SeatWorkEnded,
    SpecRejected,
    TimeGranted,
)

GRACE_S = 2.0
"""So long may a box go on after its seat's work has ended."""
FLUSH_S = 2.0
"""So long may word of an ended seat be on its way when its box is gone already."""


class TraceReceiver:
    """Reads in a thread of its own."""

    def __init__(
        self, messages: Iterator[EpisodeMessage], seats: tuple[str, ...], *, in_turn: bool
    ) -> None:
        """Read nothing yet.

        Args:
            messages: of the episode, after the first.
            seats: their names.
            in_turn: whether seats are called one by one, rather than all at once.
        """
        self.records: list[Record] = []
        self.exchanges: list[ModelExchange] = []
        self.granted_ms = 0
        """Wall time that our side has used up so far."""
        self.infra: Infra | None = None
        self._messages = messages
        self._ended = {name: Event() for name in seats}
        self._boxes: dict[str, Box] = {}
        self._must_go: set[str] = set()
        self._lock = Lock()
        self._timers: list[Timer] = []
        self._called: SimpleQueue[str | None] = SimpleQueue()
        if not in_turn:
            for name in seats:
                self._called.put(name)
        self._thread = Thread(target=self._read, daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def called(self) -> Iterator[str]:
        """Yield each seat when its box is to start, until the episode is over or a box has broken off."""
        while (name := self._called.get()) is not None:
            yield name

    @property
    def all_work_ended(self) -> bool:
        """Whether every seat's work has come to its end."""
        return all(ended.is_set() for ended in self._ended.values())

    def watch_over(self, seat: str, box: Box) -> None:
        """Stop this box when its seat's work has ended or our side has failed."""
        with self._lock:
            self._boxes[seat] = box
            gone = seat in self._must_go
        # What ends a box may have happened while it was starting.
        if gone:
            box.kill()

    def breaks_off(self, seat: str) -> bool:
        """Tell whether the work of a seat whose box is gone had not ended; then the episode is over."""
        broken = not self._ended[seat].wait(FLUSH_S) and seat not in self._must_go
        if broken:
            self._called.put(None)
        return broken

    def join(self, timeout_s: float) -> None:
        """Wait for the end of the stream."""
        self._thread.join(timeout_s)
        for timer in self._timers:
            timer.cancel()
        if self._thread.is_alive():
            self.infra = Infra(
                InfraKind.SERVICE, f"the trace was not sealed within {timeout_s:.0f} s"
            )
            self._end_boxes()

    def _read(self) -> None:
        try:
            for message in self._messages:
                self._take(message)
        except InfraError as error:
            self.infra = Infra(InfraKind.SERVICE, str(error))
        # However the episode ended, its agents have nobody to talk to any more.
        self._end_boxes()

    def _take(self, message: EpisodeMessage) -> None:
        match message:
            case Records(records):
                self.records.extend(records)
            case SeatCalled(name):
                self._called.put(name)
            case SeatWorkEnded(name):
                self._end_seat(name)
            case SpecRejected(where, reason):
                kind = InfraKind.MODELS if where == MODELS_FIELD else InfraKind.TASK
                self.infra = Infra(kind, f"{where}: {reason}")
            case ModelExchange():
                self.exchanges.append(message)
            case TimeGranted(_, granted_ms):
                self.granted_ms += granted_ms
            case Opened():
                pass

    def _end_seat(self, name: str) -> None:
        self._ended[name].set()
        timer = Timer(GRACE_S, self._end_box, (name,))
        timer.daemon = True
        self._timers.append(timer)
        timer.start()
        if self.all_work_ended:
            self._called.put(None)

    def _end_boxes(self) -> None:
        for name in self._ended:
            self._end_box(name)
        self._called.put(None)

    def _end_box(self, name: str) -> None:
        with self._lock:
            self._must_go.add(name)
            box = self._boxes.get(name)
        if box is not None:
            box.kill()
