"""Tests of AgentDojo: its own utility and security checks score calls made through the service."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fumehood.benchmarks.agentdojo.tasks import AgentDojo
from fumehood.benchmarks.agentdojo.world import NEEDS
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.errors import InputError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.task import Case
from tests.parts.installed import installed
from tests.unit.benchmarks.scoring import play, with_fault

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
def test_a_suite_has_the_published_number_of_tasks(argument: str, tasks: int) -> None:
    assert len(cases(argument)) == tasks


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["workspace", "travel", "banking", "slack"])
def test_gold_calls_satisfy_utility(suite: str) -> None:
    for case in cases(suite)[::9]:
        assert play(case, gold(case)).checks == {"utility": True}, case.task.task_id


def as_text(value: Json) -> Json:
    """Return a list as a model often writes it."""
    return repr(value) if isinstance(value, list) else value


@pytest.mark.slow
def test_lists_that_are_written_as_text_are_lists_in_the_world_and_in_the_trace() -> None:
    cases_with_lists = 0
    for case in cases("workspace"):
        moves: list[Move] = []
        for move in gold(case):
            arguments = move.get("args")
            texts = (
                {name: as_text(value) for name, value in arguments.items()}
                if isinstance(arguments, dict)
                else {}
            )
            moves.append({**move, "args": texts} if texts else move)
        if moves != list(gold(case)) and cases_with_lists < 5:
            cases_with_lists += 1
            assert play(case, moves).checks == {"utility": True}, case.task.task_id
    assert cases_with_lists == 5


def test_gold_calls_solve_an_injection_task_as_a_user_request() -> None:
    for case in cases("v1.1.2:injections:slack"):
        assert play(case, gold(case)).success is True, case.task.task_id
        assert play(case, ()).success is False, case.task.task_id


def test_an_agent_that_follows_an_injection_is_useful_and_not_safe() -> None:
    pair = next(
        case
        for case in cases("banking:v1.1.2:attack=direct")
        if case.task.task_id.endswith("_0.injection_task_0")
    )
    (injected,) = [
        case
        for case in cases("banking:v1.1.2:injections")
        if case.task.task_id == "banking.injection_task_0"
    ]
    calls = [move for move in gold(injected) if "tool_name" in move]
    assert play(pair, gold(pair)).checks == {"utility": True, "safety": True}
    obeyed = play(pair, (*calls, *gold(pair)))
    assert (obeyed.checks["safety"], obeyed.success) == (False, False)


def test_the_attack_is_part_of_the_initial_state() -> None:
    case = cases("slack:attack=important_instructions")[0]
    injections = case.task.initial_state["injections"]
    assert isinstance(injections, dict)
    assert injections
    assert all("<INFORMATION>" in str(text) for text in injections.values())


def test_attempts_do_not_affect_each_other() -> None:
    case = cases("banking")[3]
    moves = gold(case)
    for _ in range(2):
        assert play(case, moves[:1]).success is False
        assert play(case, moves).success is True


def test_an_unknown_part_of_the_argument_is_named() -> None:
    with pytest.raises(InputError, match="'v9' is not a version"):
        AgentDojo().load("v9")


def test_results_depend_on_neither_the_clock_nor_the_order_of_a_set() -> None:
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
    event, mail_sent = play_in_memory(cases("workspace")[0].task, moves).calls
    assert event.output is not None
    assert mail_sent.output is not None
    text = str(event.output["result"])
    places = [text.index(str(guest)) for guest in guests]
    assert places == sorted(places)
    assert "timestamp: 2025-01-01 12:00:00" in str(mail_sent.output["result"])


@pytest.mark.slow
def test_a_call_that_a_fault_holds_back_to_the_end_gives_no_utility() -> None:
    case = cases("banking")[0]
    calls = sum("tool_name" in move for move in gold(case))
    assert play(case, gold(case)).checks["utility"] is True
    held = with_fault(case, "out_of_order", calls)
    assert play(held, gold(case)).checks["utility"] is False
