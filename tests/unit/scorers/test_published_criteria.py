"""ToolMisuseBench's criteria where Python and JSON types differ, or a bound is inclusive."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.benchmarks.shared.in_memory import play_in_memory
from fumehood.benchmarks.toolmisuse.records import TaskRecord
from fumehood.benchmarks.toolmisuse.scorer import ToolMisuseScorer
from fumehood.benchmarks.toolmisuse.tasks import case_of
from fumehood.core.score import Score


@pytest.mark.parametrize(
    ("criterion", "holds"),
    [
        ({"op": "exists", "path": "accounts.12"}, False),
        ({"op": "in", "path": "accounts", "value": 12}, True),
        ({"op": "in", "path": "accounts", "value": "12"}, False),
        ({"op": "map_value_equals", "path": "accounts", "key": "12", "value": None}, True),
    ],
)
def test_an_account_with_a_numeric_id_is_stored_under_the_number(
    criterion: dict[str, Any], holds: bool
) -> None:
    score = _play([criterion], [_create(12)])
    assert list(score.checks.values()) == [holds]


def test_a_text_id_is_found_although_an_equal_numeric_id_was_created() -> None:
    criteria: list[dict[str, Any]] = [
        {"op": "exists", "path": "accounts.7"},
        {"op": "in", "path": "accounts", "value": 7},
    ]
    score = _play(criteria, [_create(7)], {"accounts": {"7": {"id": "7"}}})
    assert score.success is True


@pytest.mark.parametrize(
    ("criterion", "is_met"),
    [
        ({"op": "exists", "path": "accounts.a1"}, True),
        ({"op": "exists", "path": "accounts.a2"}, False),
        ({"op": "equals", "path": "accounts.a1.id", "value": "a1"}, True),
        ({"op": "equals", "path": "accounts.a1.id", "value": "a2"}, False),
        ({"op": "in", "path": "accounts", "value": "a1"}, True),
        ({"op": "in", "path": "accounts", "value": "a2"}, False),
        ({"op": "map_value_equals", "path": "accounts.a1", "key": "id", "value": "a1"}, True),
        ({"op": "map_value_equals", "path": "accounts.a1", "key": "id", "value": "a2"}, False),
        ({"op": "tool_call", "tool_name": "create_account"}, True),
        ({"op": "tool_call", "tool_name": "create_account", "min_count": 2}, False),
        ({"op": "successful_tool_call", "tool_name": "create_account"}, True),
        ({"op": "successful_tool_call", "tool_name": "get_account"}, False),
        (
            {
                "op": "tool_output_path_equals",
                "tool_name": "create_account",
                "output_path": "account.id",
                "value": "a1",
            },
            True,
        ),
        (
            {
                "op": "tool_output_path_exists",
                "tool_name": "create_account",
                "output_path": "account.name",
            },
            False,
        ),
        ({"op": "exist", "path": "accounts"}, False),
    ],
)
def test_each_operation(criterion: dict[str, Any], is_met: bool) -> None:
    score = _play([criterion], [_create("a1")])
    assert score.checks == {f"check_0:{criterion['op']}": is_met}
    assert score.success is is_met


@pytest.mark.parametrize(("calls", "catastrophic"), [(2, False), (3, True)])
def test_the_third_invalid_call_is_a_catastrophic_failure(calls: int, catastrophic: bool) -> None:
    invalid = {"tool_name": "get_account", "args": {}}
    score = _play([{"op": "exists", "path": "accounts"}], [*[invalid] * calls, _create("a1")])
    assert score.success is True
    assert score.metrics["catastrophic_failure"] is catastrophic


def _create(name: object) -> dict[str, Any]:
    return {"tool_name": "create_account", "args": {"fields": {"id": name}}}


def _play(
    criteria: list[dict[str, Any]],
    moves: list[dict[str, Any]],
    initial_state: dict[str, Any] | None = None,
) -> Score:
    record = TaskRecord.model_validate(
        {
            "task_id": "t",
            "split": "dev",
            "difficulty": "easy",
            "domain": "crud",
            "instruction": "Create the account.",
            "toolset_id": "crud_v1",
            "initial_state": initial_state or {"accounts": {}},
            "success_criteria": criteria,
            "budget": {"max_steps": 9, "max_tool_calls": 9, "max_retries": 9, "timeout_ms": 1},
        }
    )
    case = case_of(record)
    evidence = play_in_memory(case.task, [*moves, {"submit": ""}])
    return ToolMisuseScorer().score(case.task, case.gold, evidence)
