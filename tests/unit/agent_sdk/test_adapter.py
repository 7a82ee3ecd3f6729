"""The loop around an agent with reset() and act()."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from fumehood_agent import (
    Answer,
    Ended,
    Ending,
    Failure,
    GiveUp,
    NotAnAction,
    Observation,
    RefusalKind,
    Refused,
    Remaining,
    Reply,
    Session,
    Tool,
    Value,
    work,
)
from tests.unit.agent_sdk.memory_seat import MemorySeat, Script
from tests.unit.agent_sdk.scripted_service import ScriptedService, failure, value


class Scripted:
    """Makes the given moves and keeps what it was shown."""

    def __init__(self, *moves: object) -> None:
        self._moves = moves
        self.seen: list[Observation] = []
        self.resets = 0

    def reset(self) -> None:
        self.resets += 1

    def act(self, observation: Observation) -> object:
        self.seen.append(observation)
        return self._moves[len(self.seen) - 1]


CALL = {"tool_name": "get_account", "args": {"id": "a1"}}


def answering(*answers: Value | Failure | Reply) -> Script:
    return lambda number, name, arguments: answers[number - 1]


def test_resets_once_then_asks_until_the_agent_is_done() -> None:
    agent, seat = Scripted(CALL, CALL, None), MemorySeat(answering(Value({}), Value({})))
    assert work(agent, seat) is Ending.SUBMITTED
    assert (agent.resets, len(agent.seen), len(seat.calls)) == (1, 3, 2)
    assert seat.end == ("submitted", "")


def test_submits_an_answer() -> None:
    seat = MemorySeat(answering())
    assert work(Scripted(Answer("42")), seat) is Ending.SUBMITTED
    assert seat.end == ("submitted", "42")


def test_gives_up_with_a_reason() -> None:
    seat = MemorySeat(answering())
    assert work(Scripted(GiveUp("closed")), seat) is Ending.GAVE_UP
    assert seat.end == ("gave_up", "closed")


def test_states_the_confidence_of_an_ending() -> None:
    for move in (Answer("42", 0.8), GiveUp("closed", 0.8)):
        seat = MemorySeat(answering())
        work(Scripted(move), seat)
        assert seat.confidence == 0.8


def test_awaits_coroutines_in_one_event_loop() -> None:
    class Awaiting(Scripted):
        async def act(self, observation: Observation) -> object:
            self.loop = getattr(self, "loop", asyncio.get_running_loop())
            assert self.loop is asyncio.get_running_loop()
            return super().act(observation)

    agent, seat = Awaiting(CALL, None), MemorySeat(answering(Value({})))
    assert work(agent, seat) is Ending.SUBMITTED
    assert (len(seat.calls), seat.end) == (1, ("submitted", ""))


def test_never_calls_the_agent_after_the_end_of_the_work() -> None:
    agent, seat = Scripted(CALL), MemorySeat(answering(Value({})), calls=1)
    assert work(agent, seat) is Ending.ENDED
    assert len(agent.seen) == 1
    assert seat.end is None


def test_stops_when_the_work_ended_between_two_turns() -> None:
    class Closed(MemorySeat):
        def call(self, name: str, arguments: Any) -> Reply:
            raise Ended

    assert work(Scripted(CALL), Closed(answering())) is Ending.ENDED


def test_a_refused_call_is_a_fault_of_the_agent() -> None:
    class Narrow(MemorySeat):
        def call(self, name: str, arguments: Any) -> Reply:
            raise Refused(RefusalKind.TOO_LARGE, 10, 11)

    with pytest.raises(Refused):
        work(Scripted(CALL), Narrow(answering()))


def test_an_agent_that_raises_is_not_caught() -> None:
    class Raising(Scripted):
        def act(self, observation: Observation) -> object:
            raise ZeroDivisionError

    seat = MemorySeat(answering())
    with pytest.raises(ZeroDivisionError):
        work(Raising(), seat)
    assert seat.end is None


@dataclass
class Call:
    tool_name: str
    args: Any = field(default_factory=dict)


@pytest.mark.parametrize(
    ("move", "made"),
    [
        (CALL, ("get_account", {"id": "a1"})),
        ({"tool_name": "list_jobs"}, ("list_jobs", {})),
        (Call("get_account", {"id": "a1"}), ("get_account", {"id": "a1"})),
        (Call("no such tool"), ("no such tool", {})),
    ],
)
def test_an_action_is_a_dict_or_an_object(move: object, made: tuple[str, dict[str, Any]]) -> None:
    seat = MemorySeat(answering(Value({})))
    work(Scripted(move, None), seat)
    assert seat.calls == [made]


@pytest.mark.parametrize(
    "move", ["get_account", 1, {}, {"tool_name": 1, "args": {}}, Call("x", []), object()]
)
def test_anything_else_is_not_an_action(move: object) -> None:
    with pytest.raises(NotAnAction) as caught:
        work(Scripted(move), MemorySeat(answering()))
    assert caught.value.returned is move
    assert type(move).__name__ in str(caught.value)


def test_shows_the_task_before_the_first_call() -> None:
    agent = Scripted(None)
    work(agent, MemorySeat(answering(), instruction="Do it.", calls=3, retries=1))
    (seen,) = agent.seen
    assert seen["instruction"] == "Do it."
    assert seen["transcript"] == []
    assert seen["last_error"] is None
    assert seen["remaining_budget"] == {"steps_left": 3, "tool_calls_left": 3, "retries_left": 1}
    assert seen["tool_schemas"][1] == {
        "name": "update_account",
        "properties": {"id": {"type": "string"}, "patch": {"type": "object"}},
        "required": ["id", "patch"],
        "additionalProperties": False,
    }
    assert list(seen["tool_schemas"][1]["properties"]) == ["id", "patch"]


def test_an_observation_contains_the_last_result() -> None:
    no = Failure("not_found", "no such account", {"id": "a1"})
    agent = Scripted(CALL, CALL, None)
    work(agent, MemorySeat(answering(no, Value({"account": {}}))))
    error = {"code": "not_found", "message": "no such account", "details": {"id": "a1"}}
    assert [seen["last_error"] for seen in agent.seen] == [None, error, None]
    assert [seen["remaining_budget"].get("retries_left") for seen in agent.seen] == [2, 1, 1]
    assert agent.seen[2]["transcript"] == [
        {"tool_name": "get_account", "args": {"id": "a1"}, "output": None, "error": error},
        {
            "tool_name": "get_account",
            "args": {"id": "a1"},
            "output": {"account": {}},
            "error": None,
        },
    ]


def test_an_observation_that_was_kept_does_not_change() -> None:
    agent = Scripted(CALL, CALL, None)
    work(agent, MemorySeat(answering(Value({}), Value({}))))
    assert [len(seen["transcript"]) for seen in agent.seen] == [0, 1, 2]


def test_the_transcript_contains_the_recorded_arguments() -> None:
    recorded = Reply(Value({}), Remaining(), recorded_arguments={"account_id": "a1"})
    agent = Scripted(CALL, None)
    work(agent, MemorySeat(answering(recorded)))
    assert agent.seen[1]["transcript"][0]["args"] == {"account_id": "a1"}
    assert agent.seen[1]["remaining_budget"] == {}


def test_later_changes_of_arguments_do_not_change_the_transcript() -> None:
    arguments = {"id": "a1"}

    class Careless(Scripted):
        def act(self, observation: Observation) -> object:
            move = super().act(observation)
            arguments["id"] = f"after turn {len(self.seen)}" if move is None else "a1"
            return move

    agent = Careless({"tool_name": "get_account", "args": arguments}, None)
    work(agent, MemorySeat(answering(Value({}))))
    assert agent.seen[1]["transcript"][0]["args"] == {"id": "a1"}


def test_a_tool_has_a_description_and_a_permissive_default_schema() -> None:
    agent = Scripted(None)
    work(
        agent, MemorySeat(answering(), tools=[Tool("free", {"type": "object"}, "Takes anything.")])
    )
    assert agent.seen[0]["tool_schemas"] == [
        {
            "name": "free",
            "properties": {},
            "required": [],
            "additionalProperties": True,
            "description": "Takes anything.",
        }
    ]


def test_works_the_same_over_a_socket(service: ScriptedService, stream: bool) -> None:
    answers = [failure("busy"), value({"n": 1}, ended=False)]
    service.answer = lambda _: answers.pop(0)
    agent = Scripted(
        {"tool_name": "echo", "args": {"text": "ψ"}}, {"tool_name": "echo", "args": {}}, None
    )
    with Session(service.path, stream=stream) as session:
        assert work(agent, session) is Ending.SUBMITTED
    assert agent.seen[1]["last_error"] == {"code": "busy", "message": "no", "details": {}}
    assert agent.seen[2]["transcript"][1]["output"] == {"n": 1}
    assert len(service.submitted) == 1
