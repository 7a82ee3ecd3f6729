"""The rules that every recorder follows."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any

import pytest

from fumehood.core.episode import FireCounts
from fumehood.core.json_values import canonical_json
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.outcome import CallRefused, Finished
from fumehood.core.tools import ToolCall, Value
from fumehood.core.trace import (
    CallMade,
    EpisodeClosed,
    EpisodeOpened,
    Event,
    Record,
    Recorder,
    SeatEnded,
    verify_chain,
)
from fumehood.service.trace_stream import TraceStream
from fumehood.wire.ports import Records
from tests.parts.specs import episode_spec

EVENTS: tuple[Event, ...] = (
    EpisodeOpened(episode_spec({"family": "timeout"}, steps=3)),
    CallMade("agent", ToolCall("t", {"é": [1, 1.0, 10**30]}, 1), Value({"x": "\ud800"}), "d"),
    CallRefused("agent", "too_deep", 64, 65),
    SeatEnded("agent", Finished("done")),
    EpisodeClosed({"state": {}}, (0,)),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A recorder, and a function that returns the recorded events."""

    recorder: Recorder
    read: Callable[[], list[dict[str, Any]]]


def _memory() -> Case:
    recorder = MemoryRecorder()
    return Case(recorder, lambda: list(recorder.written()))


def _fire_counts() -> Case:
    behind = MemoryRecorder()
    return Case(FireCounts(behind, 1), lambda: list(behind.written()))


def _trace_stream() -> Case:
    stream = TraceStream()

    def read() -> list[dict[str, Any]]:
        stream.close()
        records = streamed(stream)
        verify_chain(records)
        return [json.loads(record.event_json) for record in records[:-1]]

    return Case(stream, read)


def streamed(stream: TraceStream) -> list[Record]:
    """Return every record of a closed stream."""
    return [
        record
        for message in stream.stream()
        if isinstance(message, Records)
        for record in message.records
    ]


CASES = {
    "memory": _memory,
    "fire counts": _fire_counts,
    "stream": _trace_stream,
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    """Return each recorder in turn."""
    return CASES[request.param]()


def test_it_records_every_kind_of_event_in_order(case: Case) -> None:
    for event in EVENTS:
        case.recorder.record(event, 1000)
    assert case.read() == [json.loads(canonical_json(event.to_json())) for event in EVENTS]


def test_it_records_events_of_concurrent_threads(case: Case) -> None:
    threads, each = 8, 100
    together = Barrier(threads)

    def speak(number: int) -> None:
        together.wait()
        for count in range(each):
            case.recorder.record(CallRefused(str(number), "malformed", 0, count))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(speak, range(threads)))
    taken = case.read()
    assert len(taken) == threads * each
    for number in range(threads):
        assert [event["actual"] for event in taken if event["seat"] == str(number)] == list(
            range(each)
        )


def test_records_are_equal_in_every_run(case: Case) -> None:
    case.recorder.record(EVENTS[1], 123)
    first = case.read()
    other = _memory()
    other.recorder.record(EVENTS[1], 456)
    assert first == other.read()
