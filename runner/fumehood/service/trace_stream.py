"""Streams the events of an episode to the orchestrator.

A call must not wait for its trace, so recording only appends to a queue. The thread that streams
takes the events in batches, serialises them and links them into the chain. It sleeps while there is
none, because thousands of episodes can wait for their agents at once.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from threading import Condition

from fumehood.core.conversation import TurnBegan
from fumehood.core.json_values import canonical_json
from fumehood.core.trace import Chain, EpisodeClosed, EpisodeOpened, Event, Record, SeatEnded
from fumehood.wire.ports import EpisodeMessage, Records, SeatReady, SeatWorkEnded, SpecRejected

BATCH_EVENTS = 256
"""Events per message, at most."""
BATCH_BYTES = 1024 * 1024
"""Size of a message, at most, unless a single event is larger."""
RECORD_BYTES = 256
"""Bytes of the limit of a trace that each record uses in addition to its text. The receiver of a
record needs about as much memory in addition, so tiny events would need many times their size."""
FLUSH_INTERVAL_S = 0.25
"""Time until an event is sent, at most."""

_Stamped = tuple[Event, int, int]


class TraceStream:
    """A recorder whose records can be streamed: many writers, one reader."""

    def __init__(
        self,
        flush_interval_s: float = FLUSH_INTERVAL_S,
        limit_bytes: int | None = None,
        on_full: Callable[[str], object] = id,
    ) -> None:
        """Create an empty stream.

        Args:
            flush_interval_s: how long an event may wait before it is sent, seconds.
            limit_bytes: size of all events together, each with ``RECORD_BYTES``; None for no
                limit.
            on_full: called once with the seat whose event exceeds the limit; must not block. The
                events of the work that still goes on are recorded, too.
        """
        self._limit_bytes = limit_bytes
        self._on_full = on_full
        self._size_bytes = 0
        self._flush_interval_s = flush_interval_s
        self._events: deque[_Stamped] = deque()
        self._posts: deque[EpisodeMessage] = deque()
        self._changed = Condition()
        self._urgent = False
        self._is_idle = False
        """Whether the thread that streams waits for the next event."""
        self._is_final = False
        self._closed = False
        self._broken: SpecRejected | None = None

    def record(self, event: Event, duration_ns: int = 0) -> None:
        """Append one event with its time of day; nothing follows the final state."""
        if self._is_final:
            return
        self._is_final = isinstance(event, EpisodeClosed)
        # Measured stops are subtracted from durations, so one of nearly nothing can be negative.
        duration_us = max(0, duration_ns // 1000)
        self._events.append((event, time.time_ns() // 1_000_000, duration_us))
        if (
            isinstance(event, EpisodeOpened | SeatEnded | TurnBegan)
            or len(self._events) == BATCH_EVENTS
        ):
            self._wake()
        elif self._is_idle:
            # The other thread sets the flag before it looks for events, so none is missed.
            with self._changed:
                self._changed.notify()

    def post(self, message: EpisodeMessage) -> None:
        """Send a message that is not part of the trace, after the events recorded before it."""
        self._posts.append(message)
        self._wake()

    def close(self, broken: SpecRejected | None = None) -> None:
        """End the stream after the recorded events; ``broken`` replaces the end record."""
        if not self._closed:
            self._closed, self._broken = True, broken
            self._wake()

    def stream(self) -> Iterator[EpisodeMessage]:
        """Yield all records and messages, then the end record, or why there is none."""
        chain = Chain()
        closed = False
        while not closed:
            with self._changed:
                self._is_idle = True
                self._changed.wait_for(lambda: self._urgent or self._events)
                self._is_idle = False
                self._changed.wait_for(lambda: self._urgent, self._flush_interval_s)
                self._urgent = False
            closed = self._closed
            yield from self._drain(chain)
        if self._broken is not None:
            yield self._broken
        else:
            yield Records((_link(chain, chain.end_record(), time.time_ns() // 1_000_000, 0),))

    def _drain(self, chain: Chain) -> Iterator[EpisodeMessage]:
        while self._events:
            records, messages = self._take_batch(chain)
            yield Records(records)
            yield from messages
        while self._posts:
            yield self._posts.popleft()

    def _take_batch(self, chain: Chain) -> tuple[tuple[Record, ...], list[EpisodeMessage]]:
        """Return the next records, and the messages about seats that begin or end with them."""
        records: list[Record] = []
        messages: list[EpisodeMessage] = []
        size = 0
        while self._events and len(records) < BATCH_EVENTS and size < BATCH_BYTES:
            event, wall_ms, duration_us = self._events.popleft()
            records.append(_link(chain, canonical_json(event.to_json()), wall_ms, duration_us))
            size += len(records[-1].event_json)
            self._count(event, len(records[-1].event_json) + RECORD_BYTES)
            match event:
                case TurnBegan(seat, turn=1):
                    messages.append(SeatReady(seat))
                case SeatEnded(seat):
                    messages.append(SeatWorkEnded(seat))
                case _:
                    pass
        return tuple(records), messages

    def _count(self, event: Event, size_bytes: int) -> None:
        before = self._size_bytes
        self._size_bytes += size_bytes
        limit = self._limit_bytes
        seat: str | None = getattr(event, "seat", None)
        if limit is None or self._size_bytes <= limit:
            return
        if seat is None:
            # The opening of the episode: the agent has recorded nothing yet.
            self._limit_bytes = limit + size_bytes
        elif before <= limit:
            self._on_full(seat)

    def _wake(self) -> None:
        with self._changed:
            self._urgent = True
            self._changed.notify()


def _link(chain: Chain, event_json: str, wall_ms: int, duration_us: int) -> Record:
    return Record(event_json, chain.link(event_json), wall_ms, duration_us)
