"""Events leave in batches that fit into messages, in order, and the stream says how it ends."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from threading import Thread

from fumehood.core.outcome import CallRefused, Finished
from fumehood.core.trace import EpisodeClosed, SeatEnded, verify_chain
from fumehood.service.trace_stream import BATCH_BYTES, BATCH_EVENTS, FLUSH_INTERVAL_S, TraceStream
from fumehood.wire.ports import EpisodeMessage, Records, SeatWorkEnded, SpecRejected


def refused(number: int) -> CallRefused:
    return CallRefused("agent", "malformed", 0, number)


def kinds(messages: Iterator[EpisodeMessage]) -> list[str]:
    return [
        json.loads(record.event_json)["kind"]
        for message in messages
        if isinstance(message, Records)
        for record in message.records
    ]


def test_the_seal_comes_last_and_counts() -> None:
    outbox = TraceStream()
    outbox.record(refused(1))
    outbox.close()
    messages = list(outbox.stream())
    records = [
        record for message in messages if isinstance(message, Records) for record in message.records
    ]
    verify_chain(records)
    assert json.loads(records[-1].event_json) == {"kind": "sealed", "events": 1}


def test_a_batch_has_no_more_events_than_it_may() -> None:
    outbox = TraceStream()
    for number in range(BATCH_EVENTS * 2 + 1):
        outbox.record(refused(number))
    outbox.close()
    sizes = [len(message.records) for message in outbox.stream() if isinstance(message, Records)]
    assert sizes == [BATCH_EVENTS, BATCH_EVENTS, 1, 1]


def test_a_batch_has_no_more_text_than_it_may_but_for_its_last_event() -> None:
    outbox = TraceStream()
    for size in (BATCH_BYTES // 2, BATCH_BYTES, 10, BATCH_BYTES * 3, 10):
        outbox.record(EpisodeClosed({"x": "y" * size}, ()))
    outbox.close()
    sizes = [len(message.records) for message in outbox.stream() if isinstance(message, Records)]
    assert sizes == [2, 2, 1, 1]


def test_the_end_of_a_seat_is_told_at_once_and_after_its_record() -> None:
    outbox, started = TraceStream(), time.monotonic()
    stream = outbox.stream()
    outbox.record(SeatEnded("agent", Finished()))
    assert isinstance(next(stream), Records)
    assert next(stream) == SeatWorkEnded("agent")
    assert time.monotonic() - started < FLUSH_INTERVAL_S


def test_an_event_does_not_wait_for_company() -> None:
    outbox = TraceStream()
    outbox.record(refused(1))
    stream = outbox.stream()
    assert isinstance(next(stream), Records)


def test_an_episode_that_broke_off_gets_no_seal() -> None:
    outbox, why = TraceStream(), SpecRejected("initial_state", "is odd")
    outbox.record(refused(1))
    outbox.close(why)
    outbox.close()
    *records, last = outbox.stream()
    assert last == why
    assert kinds(iter(records)) == ["refused"]


def test_an_abandoned_stream_ends_though_nothing_happens() -> None:
    outbox = TraceStream()
    heard: list[EpisodeMessage] = []
    listener = Thread(target=lambda: heard.extend(outbox.stream()))
    listener.start()
    outbox.abandon()
    listener.join(5)
    assert not listener.is_alive()
    assert heard == []


def test_what_is_abandoned_and_then_closed_gets_no_seal() -> None:
    outbox = TraceStream()
    outbox.record(refused(1))
    outbox.abandon()
    outbox.close()
    assert list(outbox.stream()) == []


def test_events_are_stamped_when_they_happen_not_when_they_are_sent() -> None:
    outbox = TraceStream()
    before = time.time_ns() // 1_000_000
    outbox.record(refused(1), duration_ns=1_234_567)
    after = time.time_ns() // 1_000_000
    time.sleep(0.05)
    outbox.close()
    first = next(outbox.stream())
    assert isinstance(first, Records)
    assert before <= first.records[0].wall_ms <= after
    assert first.records[0].duration_us == 1234
