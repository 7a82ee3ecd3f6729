"""The receiver collects a trace, reports which seats can act, and stops boxes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from queue import SimpleQueue
from threading import Event

import pytest

from fumehood.core.errors import InfraError
from fumehood.core.outcome import Infra, InfraKind
from fumehood.core.trace import Record
from fumehood.orchestrator import trace_receiver
from fumehood.orchestrator.trace_receiver import TraceReceiver
from fumehood.wire.ports import (
    MODELS_FIELD,
    EpisodeMessage,
    Records,
    SeatReady,
    SeatWorkEnded,
    SpecRejected,
    TimeGranted,
)
from tests.unit.orchestrator.boxes import MemoryBox

PATIENCE_S = 30.0


def receiver(
    *messages: EpisodeMessage, in_turn: bool = False, seats: tuple[str, ...] = ("a", "b")
) -> TraceReceiver:
    return TraceReceiver(iter(messages), seats, in_turn=in_turn, grace_s=0.0, flush_s=0.0)


def received(
    *messages: EpisodeMessage, in_turn: bool = False, seats: tuple[str, ...] = ("a", "b")
) -> TraceReceiver:
    """Return a receiver that has read all messages."""
    result = receiver(*messages, in_turn=in_turn, seats=seats)
    result.start()
    result.join(PATIENCE_S)
    return result


def record(number: int) -> Record:
    return Record(f'{{"kind":"refused","number":{number}}}', "", 0, 0)


def test_records_are_kept_in_order() -> None:
    result = received(Records((record(1), record(2))), Records((record(3),)))
    assert result.records == [record(1), record(2), record(3)]
    assert result.infra is None


@pytest.mark.parametrize(
    "text",
    ["", "text", "[]", "{}", '{"kind":5}', "[" * 100_000, '{"kind":"call","a":' + "9" * 5000 + "}"],
    ids=lambda text: text[:12],
)
def test_a_record_that_is_no_event_ends_the_attempt(text: str) -> None:
    result = received(Records((record(1),)), Records((Record(text, "", 0, 0),)))
    assert result.records == [record(1)]
    assert result.infra == Infra(InfraKind.SERVICE, "a record of the trace is no event")


def test_all_seats_can_act_at_once_where_there_are_no_turns() -> None:
    assert list(received().seats_to_start()) == ["a", "b"]


def test_the_box_of_a_conversation_seat_starts_at_its_first_turn() -> None:
    assert list(received(SeatReady("b"), in_turn=True).seats_to_start()) == ["b"]


def test_granted_time_adds_up() -> None:
    assert received(TimeGranted("a", 5), TimeGranted("b", 7)).granted_ms == 12


@pytest.mark.parametrize(
    ("field", "kind"), [(MODELS_FIELD, InfraKind.MODELS), ("world", InfraKind.TASK)]
)
def test_a_rejected_specification_names_what_failed(field: str, kind: InfraKind) -> None:
    assert received(SpecRejected(field, "no")).infra == Infra(kind, f"{field}: no")


@pytest.mark.slow
def test_a_stream_is_read_to_its_end_while_messages_arrive() -> None:
    timeout_s, messages = 0.5, 40

    def slow() -> Iterator[EpisodeMessage]:
        for at in range(messages):
            Event().wait(timeout_s / 10)
            yield Records((record(at),))

    result = TraceReceiver(slow(), ("a",), in_turn=False)
    result.start()
    result.join(timeout_s)
    assert result.infra is None
    assert len(result.records) == messages


@pytest.mark.slow
def test_a_service_that_is_gone_stops_the_boxes() -> None:
    def messages() -> Iterator[EpisodeMessage]:
        yield Records((record(1),))
        raise InfraError("the service is gone")

    result, box = TraceReceiver(messages(), ("a",), in_turn=False), MemoryBox()
    result.add_box("a", box)
    result.start()
    result.join(PATIENCE_S)
    assert result.infra == Infra(InfraKind.SERVICE, "the service is gone")
    assert box.killed.is_set()
    assert not result.ended_early("a")


class OpenStream:
    """A stream that stays open until a test closes it."""

    def __init__(self) -> None:
        self._messages: SimpleQueue[EpisodeMessage | None] = SimpleQueue()

    def send(self, message: EpisodeMessage) -> None:
        self._messages.put(message)

    def close(self) -> None:
        self._messages.put(None)

    def __iter__(self) -> Iterator[EpisodeMessage]:
        while (message := self._messages.get()) is not None:
            yield message


@pytest.fixture
def stream() -> Iterator[OpenStream]:
    opened = OpenStream()
    yield opened
    opened.close()


def test_a_box_is_stopped_after_its_seats_work_has_ended(stream: OpenStream) -> None:
    result = TraceReceiver(iter(stream), ("a", "b"), in_turn=False, grace_s=0.0)
    first, second = MemoryBox(), MemoryBox()
    result.add_box("a", first)
    result.add_box("b", second)
    result.start()
    stream.send(SeatWorkEnded("a"))
    assert first.killed.wait(PATIENCE_S)
    assert not second.killed.is_set()
    assert not result.all_work_ended


def test_a_box_that_starts_after_its_seat_was_stopped_is_stopped_at_once() -> None:
    result, box = received(), MemoryBox()
    result.add_box("a", box)
    assert box.killed.is_set()


def test_the_episode_is_over_when_all_work_has_ended(stream: OpenStream) -> None:
    result = TraceReceiver(iter(stream), ("a", "b"), in_turn=True)
    result.start()
    stream.send(SeatWorkEnded("a"))
    stream.send(SeatWorkEnded("b"))
    assert list(result.seats_to_start()) == []
    assert result.all_work_ended


def test_a_box_that_ends_before_the_work_of_its_seat_ended_early(stream: OpenStream) -> None:
    result = TraceReceiver(iter(stream), ("a", "b"), in_turn=True, flush_s=0.0)
    result.start()
    assert result.ended_early("a")
    assert list(result.seats_to_start()) == []


def test_a_box_that_ends_after_its_seats_work_does_not_end_early(stream: OpenStream) -> None:
    result = TraceReceiver(iter(stream), ("a",), in_turn=True, flush_s=PATIENCE_S)
    result.start()
    stream.send(SeatWorkEnded("a"))
    assert not result.ended_early("a")


def test_a_stream_that_does_not_end_is_a_failure_of_the_service(stream: OpenStream) -> None:
    result, box = TraceReceiver(iter(stream), ("a",), in_turn=False), MemoryBox()
    result.add_box("a", box)
    result.start()
    result.join(0.01)
    assert result.infra == Infra(
        InfraKind.SERVICE, "the trace is not complete, and nothing arrived for 0 s"
    )
    assert box.killed.is_set()


def test_a_silent_stream_is_awaited_while_the_service_answers(stream: OpenStream) -> None:
    result, asked = TraceReceiver(iter(stream), ("a",), in_turn=False), count(1)

    def answers() -> bool:
        if next(asked) == 3:
            stream.close()
        return True

    result.start()
    result.join(0.01, answers)
    assert result.infra is None


def test_a_stream_that_stays_silent_is_a_failure_although_the_service_answers(
    stream: OpenStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_receiver, "SILENT_S_MAX", 0.02)
    result = TraceReceiver(iter(stream), ("a",), in_turn=False)
    result.start()
    result.join(0.01, lambda: True)
    assert result.infra is not None
