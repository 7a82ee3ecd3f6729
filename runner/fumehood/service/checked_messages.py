"""Checks the messages of an episode process, and completes its trace if the process ends."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.event_forms import parse_event
from fumehood.core.json_values import Json, JsonObject, as_object, canonical_json
from fumehood.core.outcome import AgentCrashed
from fumehood.core.trace import (
    Chain,
    EpisodeClosed,
    EpisodeOpened,
    Event,
    ModelExchange,
    Record,
    SeatEnded,
)
from fumehood.service.trace_stream import BATCH_BYTES, BATCH_EVENTS, RECORD_BYTES
from fumehood.wire.ports import (
    EpisodeMessage,
    Opened,
    Records,
    SeatReady,
    SeatWorkEnded,
    SpecRejected,
    TimeGranted,
)

MESSAGE_BYTES = 256
"""Part of the limit of the trace that each message uses up. Without it, a process could send
messages without an effect forever. Parsing one takes about 10 µs of the service."""
CONFIRMED_CHARACTERS_MAX = 4096
"""Part of the text of a rejection that a row quotes. The process wrote it."""
WALL_MS_MAX = 253_402_300_799_999
"""The end of the year 9999, which is the last that later readers can write as a date."""
_DIGEST = re.compile("[0-9a-f]{64}")


class CheckedMessages:
    """Checks the messages of a process, and follows its trace, so that it can be completed."""

    def __init__(self, spec: EpisodeSpec, bytes_max: int) -> None:
        """Expect the first message.

        Args:
            spec: the episode.
            bytes_max: size of all events, each with ``RECORD_BYTES``, and of ``MESSAGE_BYTES`` for
                each message.
        """
        self.is_complete = False
        """Whether no message is missing at the end."""
        self._spec = spec
        self._seats = {seat.name for seat in spec.seats}
        self._once = set[EpisodeMessage]()
        """Messages that must not come again. Each starts a box, a thread or a process."""
        self._is_opened = self._is_rejected = self._is_closed = False
        self.bytes_left = bytes_max
        """What further messages may use of the limit of the trace."""
        self._chain = Chain()
        self._fired = Counter[int]()
        self._unsent: list[Record] = []
        """Valid records of a message whose next record is not valid."""

    def add(self, message: EpisodeMessage) -> None:
        """Take the next message of the process.

        Raises:
            ValueError: the message does not belong to this episode.
        """
        if self._is_rejected:
            raise ValueError("it follows a rejection")
        if self._is_opened and isinstance(message, Opened):
            raise ValueError("the episode is already open")
        self._use_up(MESSAGE_BYTES)
        match message:
            case Records(records):
                # Otherwise, one message could delay the messages of other episodes.
                size_bytes = sum(len(record.event_json) for record in records[:-1])
                if len(records) > BATCH_EVENTS or size_bytes >= BATCH_BYTES:
                    raise ValueError("one message has too many or too large events")
                for record in records:
                    self._add(record, is_last=record is records[-1])
                    self._unsent.append(record)
                self._unsent.clear()
            case SeatReady(name) | SeatWorkEnded(name):
                self._check_seat(name)
                if message in self._once:
                    raise ValueError("the work of a seat begins or ends again")
                self._once.add(message)
            case TimeGranted(name):
                self._check_seat(name)
            case ModelExchange(seat=name, key=key, occurrence=occurrence):
                self._check_seat(name)
                if not _DIGEST.fullmatch(key) or occurrence < 1:
                    raise ValueError("a model request has no valid digest or number")
            case Opened():
                self._is_opened = True
            case SpecRejected(field):
                if len(field) > CONFIRMED_CHARACTERS_MAX:
                    raise ValueError("the name of a rejected field is too long")
                self._is_rejected = True

    def complete(self, reason: str) -> Iterator[EpisodeMessage]:
        """Yield the end of the work of all seats for a reason of one line, and the end of the
        trace.

        The state is unknown. The end of a seat that had ended is replaced, because the work cannot
        be scored. If the episode was closed, only the end of the trace is missing.
        """
        plan = self._spec.fault_plan
        counts = tuple(self._fired[rule] for rule in range(len(plan)))
        seats = [seat.name for seat in self._spec.seats]
        events: list[Event] = []
        if not self._is_closed:
            events = [SeatEnded(seat, AgentCrashed(reason)) for seat in seats]
            events.append(EpisodeClosed({}, counts))
        texts = [canonical_json(event.to_json()) for event in events]
        records = [*self._unsent, *map(self._record, texts)]
        records.append(self._record(self._chain.end_record()))
        yield Records(tuple(records))
        yield from map(SeatWorkEnded, seats)

    def _add(self, record: Record, *, is_last: bool) -> None:
        self._use_up(len(record.event_json) + RECORD_BYTES)
        if not (0 <= record.wall_ms <= WALL_MS_MAX and 0 <= record.duration_us <= WALL_MS_MAX):
            raise ValueError("the time of an event is not valid")
        if self.is_complete:
            raise ValueError("the trace has ended")
        text = record.event_json
        is_end = '"sealed"' in text and text == self._chain.end_record()
        if is_end != self._is_closed:
            # Readers need exactly one final state, at the end of the trace.
            raise ValueError("the event that closes the episode is not the last one of its trace")
        if is_end and not is_last:
            raise ValueError("the trace ends before its last record")
        event: JsonObject = {} if is_end else parse_event(text)
        if event:
            self._check_event(event)
        if not self._chain.follow(record):
            raise ValueError("the hash of an event is wrong")
        # Only now: a trace is completed from what it contains.
        self._is_closed |= event.get("kind") == "closed"
        self.is_complete |= is_end

    def _use_up(self, size_bytes: int) -> None:
        self.bytes_left -= size_bytes
        if self.bytes_left < 0:
            raise ValueError("the trace is too long")

    def _check_event(self, event: JsonObject) -> None:
        """Check what an event states about the episode, and count its faults."""
        if self._chain.length == 0:
            opened = EpisodeOpened(replace(self._spec, initial_state={})).to_json()
            # As texts, because 1 equals true.
            if canonical_json({**event, "state": opened["state"]}) != canonical_json(opened):
                raise ValueError("the first event does not open this episode")
        elif event["kind"] == "opened":
            raise ValueError("an event opens the episode again")
        match event:
            case {"kind": "call", "seat": str(seat), "faults": list(faults)}:
                self._check_seat(seat)
                for fired in faults:
                    self._count_fault(as_object(fired)["rule"])
            case {"kind": "closed", "fire_counts": list(counts)}:
                if len(counts) != len(self._spec.fault_plan):
                    raise ValueError("the number of fire counts is wrong")
            case {"seat": str(seat)}:
                self._check_seat(seat)

    def _check_seat(self, name: str) -> None:
        if name not in self._seats:
            raise ValueError("the episode has no such seat")

    def _count_fault(self, rule: Json) -> None:
        if not isinstance(rule, int) or not 0 <= rule < len(self._spec.fault_plan):
            raise ValueError("the episode has no such planned fault")
        self._fired[rule] += 1

    def _record(self, event_json: str) -> Record:
        return Record(event_json, self._chain.link(event_json), time.time_ns() // 1_000_000, 0)
