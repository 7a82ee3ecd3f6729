"""A trace stream sends events in order, in batches that fit into messages, and states its end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from threading import Thread

from fumehood.core.conversation import TurnBegan
from fumehood.core.outcome import CallRefused, Finished, GaveUp
from fumehood.core.trace import EpisodeClosed, SeatEnded, verify_chain
from fumehood.service.trace_stream import BATCH_BYTES, BATCH_EVENTS, TraceStream
from fumehood.wire.ports import (
    EpisodeMessage,
    Records,
    SeatReady,
    SeatWorkEnded,
    SpecRejected,
    TimeGranted,
)


def refused(number: int) -> CallRefused:
    return CallRefused("agent", "malformed", 0, number)


def kinds(messages: Iterator[EpisodeMessage]) -> list[str]:
    return [
        json.loads(record.event_json)["kind"]
        for message in messages
        if isinstance(message, Records)
        for record in message.records
    ]


def test_the_seal_comes_last_and_counts_the_events() -> None:
    trace = TraceStream()
    trace.record(refused(1))
    trace.close()
    messages = list(trace.stream())
    records = [
        record for message in messages if isinstance(message, Records) for record in message.records
    ]
    verify_chain(records)
    assert json.loads(records[-1].event_json) == {"kind": "sealed", "events": 1}


def test_nothing_follows_the_final_state() -> None:
    trace = TraceStream()
    trace.record(EpisodeClosed({}, ()))
    trace.record(refused(1))
    trace.close()
    assert kinds(trace.stream()) == ["closed", "sealed"]


def test_the_number_of_events_per_message_is_limited() -> None:
    trace = TraceStream()
    for number in range(BATCH_EVENTS * 2 + 1):
        trace.record(refused(number))
    trace.close()
    sizes = [len(message.records) for message in trace.stream() if isinstance(message, Records)]
    assert sizes == [BATCH_EVENTS, BATCH_EVENTS, 1, 1]


def test_the_size_of_a_message_is_limited_except_for_its_last_event() -> None:
    trace = TraceStream()
    for size in (BATCH_BYTES // 2, BATCH_BYTES, 10, BATCH_BYTES * 3, 10):
        trace.record(SeatEnded("agent", GaveUp("y" * size)))
    trace.close()
    sizes = [len(message.records) for message in trace.stream() if isinstance(message, Records)]
    assert sizes == [2, 2, 1, 1]


def test_the_end_of_a_seat_is_sent_at_once_and_after_its_record() -> None:
    # Nothing but the event itself wakes a stream with such an interval.
    trace = TraceStream(flush_interval_s=3600)
    stream = trace.stream()
    trace.record(SeatEnded("agent", Finished()))
    assert isinstance(next(stream), Records)
    assert next(stream) == SeatWorkEnded("agent")


def test_a_posted_message_is_sent_at_once() -> None:
    trace = TraceStream(flush_interval_s=3600)
    trace.post(TimeGranted("agent", 5))
    assert next(trace.stream()) == TimeGranted("agent", 5)


def test_a_full_batch_is_sent_at_once() -> None:
    trace = TraceStream(flush_interval_s=3600)
    for number in range(BATCH_EVENTS):
        trace.record(refused(number))
    assert isinstance(next(trace.stream()), Records)


def test_the_first_turn_of_a_seat_announces_the_seat() -> None:
    trace = TraceStream(flush_interval_s=3600)
    trace.record(TurnBegan("user", 1, "Hello."))
    stream = trace.stream()
    assert isinstance(next(stream), Records)
    assert next(stream) == SeatReady("user")


def test_a_single_event_is_sent_after_the_flush_interval() -> None:
    trace = TraceStream(flush_interval_s=0.0)
    trace.record(refused(1))
    assert isinstance(next(trace.stream()), Records)


def test_an_event_wakes_a_stream_that_waits_for_the_first_one() -> None:
    trace = TraceStream(flush_interval_s=0.0)
    messages: list[EpisodeMessage] = []
    listener = Thread(target=lambda: messages.append(next(trace.stream())))
    listener.start()
    trace.record(refused(1))
    listener.join(5)
    assert isinstance(messages[0], Records)


def test_an_episode_that_broke_off_has_no_seal() -> None:
    trace, why = TraceStream(), SpecRejected("initial_state", "is odd")
    trace.record(refused(1))
    trace.close(why)
    trace.close()
    *records, last = trace.stream()
    assert last == why
    assert kinds(iter(records)) == ["refused"]


def test_an_event_has_the_time_of_its_recording() -> None:
    trace = TraceStream()
    before = time.time_ns() // 1_000_000
    trace.record(refused(1), duration_ns=1_234_567)
    after = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 == after:
        pass
    trace.close()
    first = next(trace.stream())
    assert isinstance(first, Records)
    assert before <= first.records[0].wall_ms <= after
    assert first.records[0].duration_us == 1234
