"""A seat endpoint survives broken worlds, extends wall time, and enforces its limits."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Condition, Event, Lock

import pytest

from fumehood.core.conversation import Conversation, ConversationSpec, Handover, TurnQueue
from fumehood.core.episode import Reply, Seat
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.ledger import Budget, BudgetKind, Ledger, Reservation
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.outcome import Finished, ModelProblem, Refusal, RefusalKind
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.core.trace import ModelCalled
from fumehood.service.open_episode import MonotonicClock, OpenEpisode
from fumehood.service.seat_endpoint import PERMISSIONS_MAX, SeatEndpoint, SeatLimits
from fumehood.wire.ports import SpecRejected, TaskView
from tests.parts.specs import episode_spec


class BrokenTools:
    """A toolset with a bug."""

    def list_tools(self) -> tuple[ToolSpec, ...]:
        return ()

    def call(self, call: ToolCall) -> ToolResult:
        raise ZeroDivisionError("a secret of the world")


@pytest.fixture
def broken() -> list[SpecRejected]:
    """The reasons that the orchestrator receives."""
    return []


@pytest.fixture
def recorder() -> MemoryRecorder:
    """The trace."""
    return MemoryRecorder()


@pytest.fixture
def endpoint(broken: list[SpecRejected], recorder: MemoryRecorder) -> SeatEndpoint:
    """The endpoint of a seat with a broken world."""
    return SeatEndpoint(
        Seat("agent", TurnQueue("Do it."), BrokenTools(), Ledger(Budget()), recorder),
        recorder=recorder,
        lock=Lock(),
        clock=MonotonicClock(),
        limits=SeatLimits(),
        on_broken=broken.append,
    )


def test_a_call_that_cannot_be_recorded_crashes_the_agent_and_is_hidden_from_it(
    endpoint: SeatEndpoint,
    broken: list[SpecRejected],
    recorder: MemoryRecorder,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A library that sets up logging for itself may have switched all loggers off.
    monkeypatch.setattr(logging.getLogger("fumehood.service"), "disabled", False)
    with caplog.at_level(logging.ERROR):
        assert endpoint.call("t", "{}", "") == Refusal(RefusalKind.ENDED)
    assert broken == []
    [ended] = recorder.written()
    assert ended["end"] == {
        "outcome": "agent_crashed",
        "detail": "a call cannot be recorded: ZeroDivisionError",
    }
    assert "a secret of the world" in caplog.text


class BrokenTurns:
    """A turn policy with a bug."""

    def first_turn(self) -> Handover:
        return Handover("agent", "")

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        raise ZeroDivisionError("a secret of the turn policy")

    def turn_after_end(self, seat: str) -> Handover | None:
        return None


def test_an_answer_on_which_a_turn_policy_fails_crashes_its_seat_and_ends_the_others(
    recorder: MemoryRecorder, broken: list[SpecRejected]
) -> None:
    conversation = Conversation(BrokenTurns())
    endpoints = [
        SeatEndpoint(
            Seat(
                name,
                TurnQueue("Talk."),
                EmptyTools(),
                Ledger(Budget()),
                recorder,
                conversation,
            ),
            recorder=recorder,
            lock=Lock(),
            clock=MonotonicClock(),
            limits=SeatLimits(),
            on_broken=broken.append,
        )
        for name in ("agent", "other")
    ]
    conversation.begin()
    assert [endpoint.submit(Finished("Hello")) for endpoint in endpoints] == [False, False]
    ends = {event["seat"]: event["end"] for event in recorder.written() if "end" in event}
    assert ends == {
        "agent": {
            "outcome": "agent_crashed",
            "detail": "an answer cannot be recorded: ZeroDivisionError",
        },
        "other": {"outcome": "finished", "answer": ""},
    }
    assert broken == []


def test_later_calls_of_a_crashed_seat_are_refused(
    endpoint: SeatEndpoint, recorder: MemoryRecorder
) -> None:
    answers = [endpoint.call("t", "{}", name) for name in ("", "", "a", "a")]
    assert answers == [Refusal(RefusalKind.ENDED)] * 4
    assert len([*recorder.written()]) == 1


def test_answers_to_permission_requests_are_limited_apart_from_refusals(
    endpoint: SeatEndpoint, recorder: MemoryRecorder
) -> None:
    recorded = [
        endpoint.report_permission("run ls", "allow_once") for _ in range(PERMISSIONS_MAX + 1)
    ]
    assert recorded == [True] * PERMISSIONS_MAX + [False]
    refusals = [endpoint.report(ModelProblem.TURN_LIMIT) for _ in range(SeatLimits().refusals + 1)]
    assert refusals == [True] * SeatLimits().refusals + [False]
    kinds = [event["kind"] for event in recorder.written()]
    assert kinds == ["permission"] * PERMISSIONS_MAX + ["model_problem"] * SeatLimits().refusals


class Clock:
    """A clock that the test moves."""

    now_ms = 0

    def now_ns(self) -> int:
        return self.now_ms * 1_000_000


class EmptyTools:
    """A toolset that answers every call with an empty object."""

    def list_tools(self) -> tuple[ToolSpec, ...]:
        return ()

    def call(self, call: ToolCall) -> ToolResult:
        return Value({})


def timed(clock: Clock, **budget: int) -> SeatEndpoint:
    recorder = MemoryRecorder()
    return SeatEndpoint(
        Seat("agent", TurnQueue("Do it."), EmptyTools(), Ledger(Budget(**budget)), recorder),
        recorder=recorder,
        lock=Lock(),
        clock=clock,
        limits=SeatLimits(argument_depth=2),
        on_broken=lambda rejection: None,
    )


def test_wall_time_is_counted_down() -> None:
    clock = Clock()
    endpoint = timed(clock, wall_ms=100)
    endpoint.view_task()
    clock.now_ms = 99
    assert endpoint.view_task().remaining[BudgetKind.WALL_MS] == 1
    assert not endpoint.is_out_of_time()
    clock.now_ms = 100
    assert endpoint.is_out_of_time()
    assert endpoint.call("t", "", "") == Refusal(RefusalKind.ENDED)


def test_the_wall_time_starts_with_the_first_message() -> None:
    clock = Clock()
    endpoint = timed(clock, wall_ms=100)
    clock.now_ms = 30_000
    assert not endpoint.is_out_of_time()
    assert isinstance(endpoint.call("t", "", ""), Reply)
    clock.now_ms += 100
    assert endpoint.call("t", "", "") == Refusal(RefusalKind.ENDED)


def test_granted_time_extends_the_wall_time() -> None:
    clock = Clock()
    endpoint = timed(clock, wall_ms=100)
    endpoint.view_task()
    clock.now_ms = 120
    endpoint.grant(50)
    assert endpoint.view_task().remaining[BudgetKind.WALL_MS] == 30
    assert isinstance(endpoint.call("t", "", ""), Reply)


def test_granted_time_sets_no_limit_where_there_is_none() -> None:
    endpoint = timed(Clock())
    endpoint.grant(50)
    assert endpoint.view_task().remaining == {}
    assert not endpoint.has_limit(BudgetKind.WALL_MS)


def test_a_closed_endpoint_refuses_model_requests() -> None:
    endpoint = timed(Clock())
    endpoint.close(timed_out=False)
    assert endpoint.reserve({BudgetKind.MODEL_CALLS: 1}) is None


@pytest.mark.parametrize("is_settled", [True, False], ids=["settled", "open"])
@pytest.mark.parametrize("in_conversation", [True, False], ids=["conversation", "alone"])
def test_a_model_request_that_is_open_at_the_end_of_a_conversation_is_recorded(
    recorder: MemoryRecorder, *, in_conversation: bool, is_settled: bool
) -> None:
    lock = Lock()
    endpoint = SeatEndpoint(
        Seat("agent", TurnQueue("Do it."), BrokenTools(), Ledger(Budget()), recorder),
        recorder=recorder,
        lock=lock,
        clock=MonotonicClock(),
        limits=SeatLimits(),
        on_broken=print,
        turn_changed=Condition(lock) if in_conversation else None,
    )
    cost = {BudgetKind.MODEL_CALLS: 1}
    reservation = endpoint.reserve(cost)
    assert isinstance(reservation, Reservation)
    event = ModelCalled(seat="agent", model="m", request="0", status=200, response="0")
    if is_settled:
        endpoint.settle(reservation, event, cost)
    endpoint.close(timed_out=False)
    endpoint.close(timed_out=False)
    endpoint.settle(reservation, event, cost)
    reasons = [each["reason"] for each in recorder.written() if each["kind"] == "model_refused"]
    assert reasons == ["ended"] * (in_conversation and not is_settled)


def test_a_false_usage_report_is_charged_up_to_the_budget() -> None:
    endpoint = timed(Clock(), model_tokens=10)
    reservation = endpoint.reserve({BudgetKind.MODEL_TOKENS: 4})
    assert isinstance(reservation, Reservation)
    event = ModelCalled(seat="agent", model="m", request="", status=200, response="")
    endpoint.settle(reservation, event, {BudgetKind.MODEL_TOKENS: 10**12})
    assert endpoint.view_task().remaining == {BudgetKind.MODEL_TOKENS: 0}


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ('{"a":{}}', None),
        ('{"a":{"b":{}}}', Refusal(RefusalKind.TOO_DEEP, 2, 3)),
        ('{"a":[]}', None),
        ('{"a":[[]]}', Refusal(RefusalKind.TOO_DEEP, 2, 3)),
        ('{"a":"[[[[["}', None),
        ('{"a":1e999}', Refusal(RefusalKind.MALFORMED)),
        ('{"a":NaN}', Refusal(RefusalKind.MALFORMED)),
    ],
)
def test_arguments_are_checked_at_their_limits(arguments: str, refusal: Refusal | None) -> None:
    reply = timed(Clock()).call("t", arguments, "")
    assert reply == refusal if refusal else isinstance(reply, Reply)


class Begin(Event):
    """The begin of an episode, which notes that a message waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_awaited = Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.is_awaited.set()
        return super().wait(timeout)


class SetClock:
    """A clock that a test sets."""

    now_s = 0

    def now_ns(self) -> int:
        return self.now_s * 10**9


def test_the_wait_for_the_begin_costs_no_wall_time(recorder: MemoryRecorder) -> None:
    begin, clock = Begin(), SetClock()
    ledger = Ledger(Budget(wall_ms=3000))
    endpoint = SeatEndpoint(
        Seat("agent", TurnQueue("Do it."), EmptyTools(), ledger, recorder),
        recorder=recorder,
        lock=Lock(),
        clock=clock,
        limits=SeatLimits(),
        on_broken=print,
        begun=begin,
    )
    with ThreadPoolExecutor(1) as threads:
        view = threads.submit(endpoint.view_task)
        assert begin.is_awaited.wait(20)
        clock.now_s = 60
        begin.set()
        assert view.result().remaining == {BudgetKind.WALL_MS: 3000}
    clock.now_s = 62
    assert endpoint.view_task().remaining == {BudgetKind.WALL_MS: 1000}


def test_refused_messages_of_64_mib_together_are_permitted(recorder: MemoryRecorder) -> None:
    floods: list[str] = []
    endpoint = SeatEndpoint(
        Seat("agent", TurnQueue("Do it."), EmptyTools(), Ledger(Budget()), recorder),
        recorder=recorder,
        lock=Lock(),
        clock=SetClock(),
        limits=SeatLimits(),
        on_broken=print,
        on_flood=lambda seat, detail: floods.append(detail),
    )
    endpoint.count_refused(64 << 20)
    assert not floods
    for _ in range(2):
        endpoint.count_refused(1)
    assert floods == ["it sent more than 67108864 bytes of refused messages"]


def test_calls_and_submissions_are_counted(endpoint: SeatEndpoint) -> None:
    assert endpoint.message_counts() == (0, 0)
    endpoint.view_task()
    endpoint.call("t", "{}", "")
    endpoint.submit(Finished(""))
    assert endpoint.message_counts() == (2, 0)


def test_the_wall_time_of_a_seat_pauses_while_another_has_the_turn() -> None:
    clock = SetClock()
    budget = Budget(wall_ms=30_000)
    seats = [SeatSpec(name=name, instruction="Talk.", budget=budget) for name in ("agent", "user")]
    dialogue = ConversationSpec("dialogue", {"first": "user"})
    episode = OpenEpisode(
        replace(episode_spec(seats=seats), conversation=dialogue),
        MemoryRecorder(),
        clock,
        SeatLimits(),
        on_broken=print,
    )
    agent, user = episode.endpoints
    with ThreadPoolExecutor(2) as threads:
        clock.now_s = 1
        user.view_task()
        clock.now_s = 3
        heard = threads.submit(user.submit, Finished("Hello"))
        assert agent.await_turn()
        clock.now_s = 10
        agent.view_task()
        clock.now_s = 14
        threads.submit(agent.submit, Finished("Hello, too"))
        user_view, agent_view = heard.result(), agent.view_task()
        episode.close(timed_out=False)
    assert isinstance(user_view, TaskView)
    assert user_view.remaining == {BudgetKind.WALL_MS: 28_000}
    assert agent_view.remaining == {BudgetKind.WALL_MS: 26_000}
