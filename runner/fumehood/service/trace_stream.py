"""Events on their way from the door to the orchestrator.

A call must not wait for its trace: the door only puts events down here. Whoever streams them out takes them
in batches and does the writing, chaining and sending in a thread of its own.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from threading import Condition

from fumehood.core.conversation import TurnBegan
from fumehood.core.json_values import canonical_json
from fumehood.core.trace import Chain, Event, Record, SeatEnded
from fumehood.wire.ports import EpisodeMessage, Records, SeatCalled, SeatWorkEnded, SpecRejected

BATCH_EVENTS = 256
"""As many events are sent at once, at most."""
BATCH_BYTES = 1024 * 1024
"""With as much text, at most, unless one event alone has more."""
FLUSH_INTERVAL_S = 0.25
"""So long may an event wait before it is sent."""

_Stamped = tuple[Event, int, int]


class TraceStream:
    """A recorder whose records can be streamed. Many may write, one reads."""

    def __init__(self) -> None:
        self._events: deque[_Stamped] = deque()
        self._posts: deque[EpisodeMessage] = deque()
        self._changed = Condition()
        self._urgent = False
        self._closed = False
        self._abandoned = False
        self._broken: SpecRejected | None = None

    def record(self, event: Event, duration_ns: int = 0) -> None:
        """Put one event down, stamped with the time of day."""
        self._events.append((event, time.time_ns() // 1_000_000, duration_ns // 1000))
        if isinstance(event, SeatEnded | TurnBegan) or len(self._events) == BATCH_EVENTS:
            self._wake()

    def post(self, message: EpisodeMessage) -> None:
        """Send a message that is no part of the trace, after what was recorded before it."""
        self._posts.append(message)
        self._wake()

    def close(self, broken: SpecRejected | None = None) -> None:
        """Say that nothing more will be put down.

        Args:
            broken: why the episode broke off; its trace then gets no seal.
        """
        if not self._closed:
            self._closed, self._broken = True, broken
            self._wake()

    def abandon(self) -> None:
        """Make the stream end where it is, without a seal."""
        self._abandoned = True
        self._wake()

    def stream(self) -> Iterator[EpisodeMessage]:
        """Yield everything that is put down, then the seal, or why there is none."""
        chain = Chain()
        closed = False
        while not closed:
            with self._changed:
                self._changed.wait_for(lambda: self._urgent, FLUSH_INTERVAL_S)
                self._urgent = False
            # In this order: what is abandoned and then closed must not be sealed.
            closed = self._closed
            if self._abandoned:
                return
            yield from self._drain(chain)
        if self._broken is not None:
            yield self._broken
        else:
            yield Records((_link(chain, chain.seal(), time.time_ns() // 1_000_000, 0),))

    def _drain(self, chain: Chain) -> Iterator[EpisodeMessage]:
        while self._events:
            records, told = self._take_batch(chain)
            yield Records(records)
            yield from told
        while self._posts:
            yield self._posts.popleft()

    def _take_batch(self, chain: Chain) -> tuple[tuple[Record, ...], list[EpisodeMessage]]:
        """Return the next records, and what is to be told of seats that begin or end with them."""
        records: list[Record] = []
        told: list[EpisodeMessage] = []
        size = 0
        while self._events and len(records) < BATCH_EVENTS and size < BATCH_BYTES:
            event, wall_ms, duration_us = self._events.popleft()
            records.append(_link(chain, canonical_json(event.to_json()), wall_ms, duration_us))
            size += len(records[-1].event_json)
            match event:
                case TurnBegan(seat, turn=1):
                    told.append(SeatCalled(seat))
                case SeatEnded(seat):
                    told.append(SeatWorkEnded(seat))
                case _:
                    pass
        return tuple(records), told

    def _wake(self) -> None:
        with self._changed:
            self._urgent = True
            self._changed.notify()


def _link(chain: Chain, event_json: str, wall_ms: int, duration_us: int) -> Record:
    return Record(event_json, chain.link(event_json), wall_ms, duration_us)
