"""The native scorer uses the events of the trace, not the codes that the agent saw."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fumehood.core.conversation import ConversationSpec
from fumehood.core.evidence import Submission
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import Finished, GaveUp, OutOfBudget, SeatEnd
from fumehood.core.tools import FailureKind
from fumehood.scorers.native import task_metrics
from tests.unit.scorers.answered_calls import answered, evidence, failed, judged, task

HOLDS = {"op": "unchanged"}
INVALID, WORLD, FAULT, SPENT = (
    FailureKind.INVALID_CALL,
    FailureKind.WORLD,
    FailureKind.FAULT,
    FailureKind.OUT_OF_BUDGET,
)


@pytest.mark.parametrize(
    ("solvable", "end", "success"),
    [
        (True, Finished(), True),
        (True, None, True),
        (True, GaveUp(), False),
        (False, GaveUp(), True),
        (False, Finished(), False),
        (False, None, False),
    ],
)
def test_success_requires_the_end_that_the_task_requires(
    solvable: bool, end: SeatEnd | None, success: bool
) -> None:
    assert judged(HOLDS, evidence(end=end), solvable=solvable).success is success


def test_giving_up_does_not_excuse_a_failed_criterion() -> None:
    given = evidence(state={"a": 2}, end=GaveUp())
    assert judged(HOLDS, given, {"a": 1}, solvable=False).success is False


@pytest.mark.parametrize(
    ("kind", "exceeded"), [(BudgetKind.MODEL_TOKENS, True), (BudgetKind.WALL_MS, False)]
)
def test_a_refused_model_request_exceeds_the_budget(kind: BudgetKind, *, exceeded: bool) -> None:
    score = judged(HOLDS, evidence(end=OutOfBudget(kind)))
    assert score.metrics["budget_exceeded"] is exceeded


def test_calls_of_a_simulated_user_are_not_those_of_the_agent() -> None:
    of_user = [replace(failed(kind), seat="user") for kind in (INVALID, FAULT, SPENT)]
    given = replace(
        evidence(answered("t"), *of_user),
        ends={"agent": Finished(), "user": OutOfBudget(BudgetKind.MODEL_TOKENS)},
    )
    talk = replace(task(), counterparts={"user": "script"})
    metrics = task_metrics(talk, given, success=True)
    assert (metrics["tool_calls"], metrics["policy_violations"]) == (1, 0)
    assert metrics["catastrophic_failure"] is False
    assert task_metrics(task(), given, success=True)["tool_calls"] == 4


def test_a_task_without_criteria_is_never_a_success() -> None:
    assert judged([], evidence()).success is False


def test_the_last_retry_of_a_call_without_an_original_error_is_not_invalid() -> None:
    given = evidence(failed(SPENT, code="retry_exceeded"), answered("t"))
    assert judged(HOLDS, given).metrics["invalid_calls"] == 0


def test_a_denial_counts_although_its_error_was_rewritten() -> None:
    given = evidence(failed(FAULT, "t", 0, 1), failed(FAULT, "t", 1))
    metrics = judged(HOLDS, given, None, "authz", "adversarial_error").metrics
    assert metrics["policy_violations"] == 1


@pytest.mark.parametrize("op", ["exists", "equals"])
def test_a_change_that_a_criterion_requires_is_not_collateral(op: str) -> None:
    given = evidence(state={"a": {"b": 1}, "c": 1})
    metrics = judged({"op": op, "path": "a.b", "value": 1}, given, {"c": 0}).metrics
    assert metrics["collateral_changes"] == 1


@pytest.mark.parametrize(
    "criterion",
    [
        {"op": "map_value_equals", "path": "a.b", "key": "k", "value": 1},
        {"op": "not", "condition": {"op": "equals", "path": "a.b.k", "value": 2}},
        {
            "op": "any_of",
            "conditions": [
                {"op": "exists", "path": "d"},
                {"op": "at_least", "path": "a.b.k", "value": 1},
            ],
        },
        {"op": "in", "path": "a.b", "value": {"id": "k"}},
    ],
    ids=lambda criterion: criterion["op"],
)
def test_a_criterion_about_a_nested_value_allows_only_its_change(criterion: dict[str, Any]) -> None:
    given = evidence(state={"a": {"b": {"k": 1, "l": 1}}, "c": 1})
    metrics = judged(criterion, given, {"a": {"b": {"k": 0, "l": 0}}, "c": 1}).metrics
    assert metrics["collateral_changes"] == 1


def test_a_seat_without_a_call_or_a_text_is_idle() -> None:
    talk = replace(
        task(),
        seats=tuple(replace(task().seats[0], name=name) for name in "abcde"),
        conversation=ConversationSpec("dialogue", {}),
    )
    given = replace(
        evidence(replace(answered("t"), seat="a")),
        submissions=(Submission("b", "hello", 1), Submission("c", "", 1)),
    )
    metrics = task_metrics(talk, given, success=True)
    assert (metrics["messages"], metrics["idle_seats"]) == (1, 3)


def test_invalid_calls_are_counted_by_kind_not_by_code() -> None:
    given = evidence(
        failed(INVALID, code="missing_required_arg"),
        failed(FAULT, "t", 0, code="unknown_argument"),
        failed(WORLD, code="not_found"),
        failed(SPENT, code="retry_exceeded", original="unknown_tool"),
    )
    metrics = judged(HOLDS, given, None, "schema_drift").metrics
    assert metrics["invalid_calls"] == 2
    assert metrics["policy_violations"] == 2
    assert metrics["budget_exceeded"] is True
    assert metrics["catastrophic_failure"] is True


def test_a_denial_with_a_rewritten_code_is_a_policy_violation() -> None:
    families = ("authz", "adversarial_error", "timeout")
    given = evidence(
        failed(FAULT, "t", 0, 1, code="not_found"),
        failed(FAULT, "t", 0, 2, code="timeout"),
        failed(WORLD, "t", 0, code="not_found"),
        answered("t", 0),
    )
    assert judged(HOLDS, given, None, *families).metrics["policy_violations"] == 1


def test_a_fault_is_seen_when_it_fired_not_when_its_code_was_visible() -> None:
    assert (
        judged(HOLDS, evidence(answered("t", 0)), None, "schema_drift").metrics["fault_seen"]
        is True
    )
    shown = evidence(failed(WORLD, code="timeout"))
    assert judged(HOLDS, shown, None, "timeout").metrics["fault_seen"] is False


@pytest.mark.parametrize(
    ("calls", "calls_to_recovery"),
    [
        ([failed(FAULT, "a", 0), answered("a")], 1),
        (
            [
                answered("a"),
                failed(FAULT, "a", 0),
                answered("b"),
                failed(FAULT, "a", 0),
                answered("a"),
            ],
            3,
        ),
        ([failed(FAULT, "a", 0), answered("b")], None),
        ([answered("a", 0), answered("a")], None),
        ([failed(WORLD, "a"), answered("a")], None),
    ],
)
def test_recovery_requires_a_success_of_the_same_tool(
    calls: list[Any], calls_to_recovery: int | None
) -> None:
    metrics = judged(HOLDS, evidence(*calls), None, "timeout").metrics
    assert metrics["time_to_recovery"] == calls_to_recovery


def test_planned_and_fired_faults_are_counted_separately() -> None:
    given = evidence(answered("t", 1), fire_counts=(0, 1))
    metrics = judged(HOLDS, given, None, "timeout", "schema_drift").metrics
    assert (metrics["faults_planned"], metrics["faults_fired"]) == (2, 1)
    assert (metrics["primary_fault"], metrics["fault_types"]) == (
        "timeout",
        ["timeout", "schema_drift"],
    )
    assert metrics["recovery_success"] is True


def test_collateral_changes_are_those_that_no_criterion_mentions() -> None:
    before = {"files": {"/a.txt": "x", "/b.txt": "y"}, "accounts": {"a1": {"tier": "t"}}}
    after = {
        "files": {"/a.txt": "z", "/c.txt": "new"},
        "accounts": {"a1": {"tier": "gold", "note": "oops"}},
    }
    criteria: list[dict[str, Any]] = [
        {"op": "map_value_equals", "path": "files", "key": "/a.txt", "value": "z"},
        {"op": "equals", "path": "accounts.a1.tier", "value": "gold"},
        {"op": "only_changed", "paths": [["files", "/c.txt"]]},
    ]
    score = judged(criteria, evidence(state=after), before)
    assert score.metrics["collateral_changes"] == 2
    assert score.checks == {
        "check_0:map_value_equals": True,
        "check_1:equals": True,
        "check_2:only_changed": False,
        "end:did_not_give_up": True,
    }
