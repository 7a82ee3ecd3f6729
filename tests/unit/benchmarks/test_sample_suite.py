"""The sample suite is varied, provable, and unsolvable for a no-op agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.score import Score
from fumehood.core.task import Case
from fumehood.scorers.registry import SCORERS

CASES = load_suite("sample").cases

each_task = pytest.mark.parametrize("case", CASES, ids=lambda case: case.task.task_id)


@each_task
def test_the_oracle_solves_it_or_gives_up_correctly(case: Case) -> None:
    score = _play(case, case.gold.oracle or ())
    assert score.success, score.checks


@each_task
def test_every_planned_fault_fires_for_the_oracle(case: Case) -> None:
    evidence = play_in_memory(case.task, case.gold.oracle or ())
    assert all(evidence.fire_counts)


@each_task
def test_the_oracle_makes_no_collateral_change(case: Case) -> None:
    assert _play(case, case.gold.oracle or ()).metrics["collateral_changes"] == 0


@each_task
def test_a_no_op_agent_fails(case: Case) -> None:
    assert _play(case, [{"submit": ""}]).success is False


@each_task
def test_giving_up_at_once_is_correct_only_if_the_task_states_it(case: Case) -> None:
    at_once = _play(case, [{"give_up": "no"}]).success
    assert at_once is (case.gold.solvable is False and "why_no_look" in case.task.tags)


@each_task
def test_the_last_call_of_the_oracle_is_needed(case: Case) -> None:
    *calls, end = case.gold.oracle or ()
    if case.gold.solvable:
        assert _play(case, [*calls[:-1], end]).success is False


def test_there_are_ten_tasks_per_world() -> None:
    assert Counter(case.task.world for case in CASES) == dict.fromkeys(
        ("crud", "retrieval", "files", "scheduling"), 10
    )


def test_each_family_of_the_sample_is_used_often_and_some_tasks_have_no_fault_or_two() -> None:
    used = Counter(rule.family for case in CASES for rule in case.task.fault_plan)
    assert used.keys() >= {"adversarial_error", "authz", "rate_limit", "schema_drift", "timeout"}
    assert min(used.values()) >= 4
    faults_per_task = Counter(len(case.task.fault_plan) for case in CASES)
    assert faults_per_task[0] >= 8
    assert faults_per_task[2] >= 6


def test_some_tasks_require_recovery_and_some_giving_up() -> None:
    recovering = [case for case in CASES if case.gold.solvable and _oracle_meets_a_failure(case)]
    assert len(recovering) >= 8
    assert sum(case.gold.solvable is False for case in CASES) >= 6


def _oracle_meets_a_failure(case: Case) -> bool:
    evidence = play_in_memory(case.task, case.gold.oracle or ())
    return any(call.failure and call.fired_rules for call in evidence.calls)


def _play(case: Case, moves: Iterable[Move]) -> Score:
    evidence = play_in_memory(case.task, moves)
    return SCORERS.load(case.gold.scorer)().score(case.task, case.gold, evidence)
