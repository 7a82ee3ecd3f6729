"""Tests of BFCL's single-turn categories: calls are compared with gold."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from fumehood.benchmarks.bfcl.package import tools_of
from fumehood.benchmarks.bfcl.tasks import SINGLE_TURN, UNSOLVABLE, Bfcl
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import OutOfBudget
from tests.parts.bfcl_gold import FAULTY, with_all_arguments
from tests.parts.installed import installed
from tests.unit.benchmarks.scoring import play, score_episode

installed("bfcl_eval", "mpmath")

PYTHON = {
    "simple_python": 400,
    "multiple": 200,
    "parallel": 200,
    "parallel_multiple": 200,
    "live_simple": 258,
    "live_multiple": 1053,
    "live_parallel": 16,
    "live_parallel_multiple": 24,
}
NO_CALL: Move = {"submit": ""}


@pytest.mark.parametrize(("category", "tasks"), PYTHON.items())
def test_gold_calls_are_valid_and_the_no_op_is_not(category: str, tasks: int) -> None:
    cases = Bfcl().load(f"{category}").cases
    assert len(cases) == tasks
    for case in cases[:: max(1, tasks // 5)]:
        assert case.gold.oracle is not None
        assert case.gold.solvable
        assert play(case, case.gold.oracle).success is True, case.task.task_id
        assert play(case, (NO_CALL,)).success is False, case.task.task_id


def test_four_tasks_are_marked_unsolvable() -> None:
    marked = {
        case.task.task_id
        for category in PYTHON
        for case in Bfcl().load(category).cases
        if case.gold.solvable is False
    }
    assert marked == UNSOLVABLE
    assert len(UNSOLVABLE) == 4


@pytest.mark.parametrize("category", PYTHON)
def test_gold_with_all_arguments_fails_in_seven_tasks(category: str) -> None:
    suite = Bfcl().load(category)
    faulty = [case for case in suite.cases if case.task.task_id in FAULTY]
    sampled = replace(suite, cases=(*faulty, *suite.cases[:: max(1, len(suite.cases) // 20)]))
    for case in with_all_arguments(sampled).cases:
        right = case.task.task_id not in FAULTY
        assert play(case, case.gold.oracle or ()).success is right, case.task.task_id


def test_the_oracle_solves_three_of_the_seven() -> None:
    assert len(FAULTY) == 7
    assert {
        "parallel_multiple_12",
        "parallel_multiple_26",
        "live_multiple_507-149-4",
    } == FAULTY - UNSOLVABLE
    for category in ("parallel_multiple", "live_multiple"):
        for case in Bfcl().load(category).cases:
            if case.task.task_id in FAULTY - UNSOLVABLE:
                assert play(case, case.gold.oracle or ()).success is True


@pytest.mark.parametrize(
    ("category", "tasks"), {"irrelevance": 240, "live_irrelevance": 884}.items()
)
def test_irrelevance_requires_no_call(category: str, tasks: int) -> None:
    cases = Bfcl().load(category).cases
    assert len(cases) == tasks
    functions = cases[0].task.initial_state["functions"]
    assert isinstance(functions, list)
    assert isinstance(functions[0], dict)
    call: Move = {"tool_name": str(functions[0]["name"]), "args": {}}
    assert play(cases[0], (NO_CALL,)).success is True
    assert play(cases[0], (call, NO_CALL)).success is False


def test_a_call_of_an_invented_function_counts() -> None:
    invented: Move = {"tool_name": "invented", "args": {}}
    irrelevant = Bfcl().load("irrelevance").cases[0]
    assert play(irrelevant, (invented, NO_CALL)).success is False
    relevant = Bfcl().load("live_relevance").cases[0]
    assert play(relevant, (invented, NO_CALL)).success is True
    simple = Bfcl().load("simple_python").cases[0]
    oracle = simple.gold.oracle or ()
    assert play(simple, oracle).success is True
    score = play(simple, (invented, *oracle))
    assert (score.success, score.metrics["error_type"]) == (
        False,
        "simple_function_checker:wrong_count",
    )


def test_every_tool_has_a_name_that_providers_accept() -> None:
    for category in SINGLE_TURN:
        for case in Bfcl().load(category).cases:
            functions = case.task.initial_state["functions"]
            assert isinstance(functions, list)
            documents = [document for document in functions if isinstance(document, dict)]
            names = [tool.name for tool in tools_of(documents)]
            assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)
            assert len(set(names)) == len(names)


def test_only_the_first_model_message_is_scored() -> None:
    simple = Bfcl().load("simple_python").cases[0]
    assert simple.task.seats[0].budget.to_json()["model_calls"] == 1
    calls = (simple.gold.oracle or ())[:-1]
    evidence = play_in_memory(simple.task, (*calls, {"give_up": "ends"}))
    for kind, replies, success in (
        (BudgetKind.MODEL_CALLS, 1, True),
        (BudgetKind.MODEL_CALLS, 0, False),
        (BudgetKind.STEPS, 1, False),
    ):
        ended = replace(
            evidence, ends={"agent": OutOfBudget(kind)}, model_replies={"agent": replies}
        )
        assert score_episode(simple.task, simple.gold, ended).success is success
