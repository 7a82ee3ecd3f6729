"""Receives the trace that a service streams, and ends boxes whose work has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread, Timer

from fumehood.core.errors import InfraError
from fumehood.core.outcome import Infra, InfraKind
from fumehood.core.trace import ModelExchange, Record, event_of
from fumehood.engines.engine import Box
from fumehood.wire.ports import (
    MODELS_FIELD,
    MONITORS_FIELD,
    EpisodeMessage,
    Opened,
    Records,
    SeatReady,
    SeatWorkEnded,
    SpecRejected,
    TimeGranted,
)

GRACE_S = 2.0
"""How long a box may run after its seat's work has ended."""
FLUSH_S = 2.0
"""How long the end of a seat's work may take to arrive after its box has ended."""
LOOK_S = 1.0
"""Interval at which an episode that waits for its next seat is checked."""
SILENT_S_MAX = 120.0
"""How much longer to wait for a message while the service answers."""


def rejection_kind(field: str) -> InfraKind:
    """Return what failed if the service rejects a field of a specification."""
    kinds = {MODELS_FIELD: InfraKind.MODELS, MONITORS_FIELD: InfraKind.MONITOR}
    return kinds.get(field, InfraKind.TASK)


class TraceReceiver:
    """Reads the stream of one episode in a thread."""

    def __init__(
        self,
        messages: Iterator[EpisodeMessage],
        seats: tuple[str, ...],
        *,
        in_turn: bool,
        on_exchange: Callable[[ModelExchange], None] = lambda _: None,
        grace_s: float = GRACE_S,
        flush_s: float = FLUSH_S,
    ) -> None:
        """Create the receiver; :meth:`start` begins to read.

        Args:
            messages: messages of the episode after ``Opened``.
            seats: names of the seats.
            in_turn: whether seats act one after another. Otherwise all boxes start at once.
            on_exchange: receives model exchanges; must not raise.
            grace_s: how long a box may run after its seat's work has ended, seconds.
            flush_s: how long the end of a seat's work may take to arrive, seconds.
        """
        self.records: list[Record] = []
        self.granted_ms = 0
        """Wall time granted so far because the infrastructure delayed a seat."""
        self.infra: Infra | None = None
        """The failure of the infrastructure; None if there was none."""
        self._messages = messages
        self._on_exchange = on_exchange
        self._grace_s = grace_s
        self._flush_s = flush_s
        self._ended = {name: Event() for name in seats}
        self._boxes: dict[str, Box] = {}
        self._stopped: set[str] = set()
        self._received = 0
        self._lock = Lock()
        self._timers: list[Timer] = []
        self._callable: SimpleQueue[str | None] = SimpleQueue()
        if not in_turn:
            for name in seats:
                self._callable.put(name)
        self._thread = Thread(target=self._read, daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def seats_to_start(self, has_stopped: Callable[[], bool] = lambda: False) -> Iterator[str]:
        """Yield each seat when its box must start, until the episode ends or a box ended early.

        Args:
            has_stopped: called every second without a seat to start; returns whether there will be
                none. Code that took over the process of the episode can keep all seats waiting.
        """
        while True:
            try:
                name = self._callable.get(timeout=LOOK_S)
            except Empty:
                if has_stopped():
                    return
                continue
            if name is None:
                return
            yield name

    @property
    def all_work_ended(self) -> bool:
        """Whether the work of every seat has ended."""
        return all(ended.is_set() for ended in self._ended.values())

    def add_box(self, seat: str, box: Box) -> None:
        """Stop this box when its seat's work has ended or the infrastructure has failed."""
        with self._lock:
            self._boxes[seat] = box
            stopped = seat in self._stopped
        # The reason to stop may have arrived while the box was starting.
        if stopped:
            box.kill()

    def ended_early(self, seat: str) -> bool:
        """Return whether a box ended before its seat's work had ended, which ends the episode."""
        ended_early = not self._ended[seat].wait(self._flush_s) and seat not in self._stopped
        if ended_early:
            self._callable.put(None)
        return ended_early

    def join(self, timeout_s: float, is_alive: Callable[[], bool] = lambda: False) -> None:
        """Wait for the end of the stream, while messages arrive or the service answers.

        Code that took over the processes of some episodes may have sent more than can be read in
        ``timeout_s``. The service reads one large message at a time, and ends these processes.

        Args:
            timeout_s: how long no message may arrive before ``is_alive`` is called, seconds.
            is_alive: returns whether the service answers; if it does, the wait continues, for
                ``SILENT_S_MAX`` at most.
        """
        received, silent_s = -1, 0.0
        while self._thread.is_alive() and silent_s < SILENT_S_MAX:
            is_silent = self._received == received
            if is_silent and not is_alive():
                break
            silent_s = silent_s + timeout_s if is_silent else 0.0
            received = self._received
            self._thread.join(timeout_s)
        for timer in self._timers:
            timer.cancel()
        if self._thread.is_alive():
            waited_s = silent_s + timeout_s
            reason = f"the trace is not complete, and nothing arrived for {waited_s:.0f} s"
            self.infra = Infra(InfraKind.SERVICE, reason)
            self._stop_boxes()

    def _read(self) -> None:
        try:
            for message in self._messages:
                self._receive(message)
                self._received += 1
        except InfraError as error:
            self.infra = Infra(InfraKind.SERVICE, str(error))
        # The sockets are closed, so no agent can continue. An engine that does not answer fails the
        # attempt where it waits for the box.
        with suppress(InfraError):
            self._stop_boxes()

    def _receive(self, message: EpisodeMessage) -> None:
        match message:
            case Records(records):
                # An agent that took over the process of its episode can write anything.
                if any(event_of(record.event_json) is None for record in records):
                    raise InfraError("a record of the trace is no event")
                self.records.extend(records)
            case SeatReady(name):
                self._callable.put(name)
            case SeatWorkEnded(name):
                self._end_seat(name)
            case SpecRejected(field, reason):
                self.infra = Infra(rejection_kind(field), f"{field}: {reason}")
            case ModelExchange():
                self._on_exchange(message)
            case TimeGranted(_, granted_ms):
                self.granted_ms += granted_ms
            case Opened():
                pass

    def _end_seat(self, name: str) -> None:
        self._ended[name].set()
        timer = Timer(self._grace_s, self._stop_box, (name,))
        timer.daemon = True
        self._timers.append(timer)
        timer.start()
        if self.all_work_ended:
            self._callable.put(None)

    def _stop_boxes(self) -> None:
        for name in self._ended:
            self._stop_box(name)
        self._callable.put(None)

    def _stop_box(self, name: str) -> None:
        with self._lock:
            self._stopped.add(name)
            box = self._boxes.get(name)
        if box is not None:
            box.kill()
