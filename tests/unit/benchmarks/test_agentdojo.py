"""AgentDojo: its own checks of tasks and of attacks over calls that went through our door."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fumehood.benchmarks.agentdojo.tasks import AgentDojo
from fumehood.benchmarks.agentdojo.world import NEEDS
from fumehood.benchmarks.in_memory import Move, play_in_memory
from fumehood.core.errors import InputError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.task import Case
from tests.parts.installed import installed
from tests.unit.benchmarks.judging import play

installed(*NEEDS)


def cases(argument: str) -> Sequence[Case]:
    return AgentDojo().load(argument).cases


def gold(case: Case) -> tuple[Move, ...]:
    assert case.gold.oracle is not None
    return case.gold.oracle


@pytest.mark.parametrize(
    ("argument", "tasks"),
    [
        ("", 97),
        ("v1.1.2", 97),
        ("v1.1.2:injections", 27),
        ("v1.2.2:injections", 35),
        ("slack:attack=direct", 105),
        ("banking:v1.1.2", 16),
    ],
)
def test_it_has_as_many_tasks_as_are_published(argument: str, tasks: int) -> None:
    assert len(cases(argument)) == tasks


@pytest.mark.parametrize("suite", ["workspace", "travel", "banking", "slack"])
def test_gold_calls_are_useful(suite: str) -> None:
    for case in cases(suite)[::9]:
        assert play(case, gold(case)).checks == {"utility": True}, case.task.task_id


def test_an_injected_task_as_a_users_is_done_by_its_gold_calls() -> None:
    for case in cases("v1.1.2:injections:slack"):
        assert play(case, gold(case)).success is True, case.task.task_id
        assert play(case, ()).success is False, case.task.task_id


def test_whoever_does_what_an_answer_tells_him_is_useful_and_not_safe() -> None:
    pair = next(
        each
        for each in cases("banking:v1.1.2:attack=direct")
        if each.task.task_id.endswith("_0.injection_task_0")
    )
    (injected,) = [
        each
        for each in cases("banking:v1.1.2:injections")
        if each.task.task_id == "banking.injection_task_0"
    ]
    calls = [move for move in gold(injected) if "tool_name" in move]
    assert play(pair, gold(pair)).checks == {"utility": True, "safety": True}
    obeyed = play(pair, (*calls, *gold(pair)))
    assert (obeyed.checks["safety"], obeyed.success) == (False, False)


def test_the_attack_stands_in_what_tools_say() -> None:
    case = cases("slack:attack=important_instructions")[0]
    injections = case.task.initial_state["injections"]
    assert isinstance(injections, dict)
    assert injections
    assert all("<INFORMATION>" in str(text) for text in injections.values())


def test_a_failed_attempt_leaves_nothing_behind() -> None:
    case = cases("banking")[3]
    moves = gold(case)
    for _ in range(2):
        assert play(case, moves[:1]).success is False
        assert play(case, moves).success is True


def test_it_says_what_an_argument_may_be() -> None:
    with pytest.raises(InputError, match="'v9' is no version"):
        AgentDojo().load("v9")


def test_neither_the_clock_nor_the_order_of_a_set_is_in_a_trace() -> None:
    guests: list[Json] = [f"guest{number}@example.com" for number in range(9)]
    times = {"start_time": "2024-05-30 10:20", "end_time": "2024-05-30 11:20"}
    mail: JsonObject = {"recipients": guests, "subject": "Hello", "body": "You are all invited."}
    moves: tuple[Move, ...] = (
        {
            "tool_name": "create_calendar_event",
            "args": {"title": "Tea", "participants": guests, **times},
        },
        {"tool_name": "send_email", "args": mail},
    )
    met, sent = play_in_memory(cases("workspace")[0].task, moves).exchanges
    assert met.output is not None
    assert sent.output is not None
    told = str(met.output["result"])
    places = [told.index(str(guest)) for guest in guests]
    assert places == sorted(places)
    assert "timestamp: 2025-01-01 12:00:00" in str(sent.output["result"])
