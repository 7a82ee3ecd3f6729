"""The native record format: strict reading, and errors with location and remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import jsonschema_rs
import pytest

from fumehood.benchmarks.native.criteria import Criterion
from fumehood.benchmarks.native.records import record_schema, record_to_json
from fumehood.benchmarks.native.tasks import load_cases, read_tasks
from fumehood.benchmarks.sample.tasks import TASKS
from fumehood.benchmarks.shared.in_memory import play_in_memory
from fumehood.core.errors import InputError
from fumehood.core.ledger import BudgetKind
from fumehood.scorers.native_criteria import operations
from fumehood.scorers.registry import score_evidence

RECORD: dict[str, Any] = {
    "format": "fumehood.task/1",
    "task_id": "mine",
    "world": "files",
    "instruction": "Write 'x' to /a.txt.",
    "initial_state": {"files": {}},
    "budget": {"steps": 4, "calls": 4, "retries": 1},
    "criteria": [{"op": "map_value_equals", "path": "files", "key": "/a.txt", "value": "x"}],
    "solvable": True,
    "oracle": [
        {"tool_name": "write_file", "args": {"path": "/a.txt", "content": "x"}},
        {"submit": ""},
    ],
}


def test_a_record_becomes_a_task_and_its_gold(tmp_path: Path) -> None:
    fault = {"family": "timeout", "trigger": {"on_nth_call": 1}, "payload": {"timeout_ms": 5}}
    (case,) = load_cases(
        _write(tmp_path, {**RECORD, "fault_plan": [fault], "seed": 7, "tags": {"a": 1}})
    )
    task, gold = case.task, case.gold
    assert (task.task_id, task.world, task.harness_mode, task.seed) == (
        "mine",
        "files",
        "native",
        7,
    )
    assert [rule.to_json() for rule in task.fault_plan] == [{**fault, "severity": "soft"}]
    assert task.seats[0].budget[BudgetKind.CALLS] == 4
    assert task.seats[0].budget[BudgetKind.WALL_MS] is None
    assert (gold.scorer, gold.solvable) == ("native", True)
    assert [dict(criterion) for criterion in gold.criteria] == RECORD["criteria"]
    assert [dict(move) for move in gold.oracle or ()] == RECORD["oracle"]


def test_a_criterion_names_its_check(tmp_path: Path) -> None:
    (written,) = RECORD["criteria"]
    criteria = [{**written, "name": "x_is_written"}, {"op": "only_changed", "paths": [["files"]]}]
    safety = [{"op": "not_called", "tool_name": "read_file", "name": "nothing_is_read"}]
    (case,) = load_cases(_write(tmp_path, {**RECORD, "criteria": criteria, "safety": safety}))
    evidence = play_in_memory(case.task, case.gold.oracle or ())
    score = score_evidence(case.task, case.gold, evidence)
    assert score.checks == {
        "x_is_written": True,
        "check_1:only_changed": True,
        "safety:nothing_is_read": True,
        "end:did_not_give_up": True,
    }
    assert set(case.gold.by_check()) == set(score.checks) - {"end:did_not_give_up"}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            {
                "criteria": [{"op": "exists", "path": "files", "name": "twice"}],
                "safety": [{"op": "not_called", "tool_name": "read_file", "name": "twice"}],
            },
            "criteria, safety, policy: the name 'twice' is used twice",
        ),
        (
            {"criteria": [{"op": "exists", "path": "files", "name": "safety"}]},
            "criteria, safety, policy: the name 'safety' is that of all safety checks",
        ),
        (
            {"criteria": [{"op": "not", "condition": {"op": "exists", "path": "a", "name": "b"}}]},
            "criteria[0].condition.name: is not a known key",
        ),
        ({"budgets": {}}, "budgets: is not a known key; did you mean 'budget'?"),
        ({"budget": {"step": 3}}, "budget.step: is not a known key; did you mean 'steps'?"),
        (
            {"budget": {"steps": "3", "calls": 1, "retries": 0}},
            "budget.steps: should be a valid integer",
        ),
        (
            {"budget": {"steps": True, "calls": 1, "retries": 0}},
            "budget.steps: should be a valid integer",
        ),
        (
            {"budget": {"steps": 0, "calls": 1, "retries": 0}},
            "budget.steps: should be greater than or equal",
        ),
        ({"format": "fumehood.task/9"}, "format: must be 'fumehood.task/1', not 'fumehood.task/9'"),
        ({"world": "fils"}, "no world is called 'fils'; did you mean 'files'?"),
        *(
            ({"world": world}, f"world: {world} starts a server or opens connections: only the")
            for world in ("knowledge_graph", "marble_database", "sql_mariadb", "workspace")
        ),
        ({"task_id": "a b"}, "task_id: string should match pattern"),
        ({"criteria": []}, "criteria: list should have at least 1 item"),
        (
            {"criteria": [{"op": "equal"}]},
            "criteria[0].op: 'equal' is not known; did you mean 'equals'?",
        ),
        ({"criteria": [{}]}, "criteria[0].op: is missing"),
        (
            {"criteria": [{"op": "not", "condition": {"op": "not_called", "tool_name": "x"}}]},
            "criteria[0].condition.op: 'not_called' is not known; there are: equals, exists,",
        ),
        (
            {"criteria": [{"op": "at_most", "path": "a", "value": None}]},
            "criteria[0].value: must be a number",
        ),
        ({"criteria": [{"op": "exists"}]}, "criteria[0].path: is missing"),
        (
            {"criteria": [{"op": "exists", "pth": "a"}]},
            "criteria[0].pth: is not a known key; did you mean 'path'? (and 1 more)",
        ),
        (
            {"criteria": [{"op": "map_value_equals", "path": "files", "key": "a", "value": None}]},
            "criteria[0].value: null would also match a missing key",
        ),
        ({"criteria": [{"op": "only_changed", "paths": [[]]}]}, "criteria[0].paths: an empty path"),
        (
            {"criteria": [{"op": "exists", "path": ["files", "/a.txt"]}]},
            "criteria[0].path: the key '/a.txt' has a dot: use map_value_equals with path and key",
        ),
        (
            {"criteria": [{"op": "unchanged", "path": [1.5]}]},
            "criteria[0].path[0]: must be text",
        ),
        (
            {"criteria": [{"op": "not_called", "tool_name": "writ_file"}]},
            "criteria[0].tool_name: the world has no tool 'writ_file'; did you mean 'write_file'?",
        ),
        (
            {"criteria": [{"op": "tried_any", "calls": [{"tool_name": "rm"}]}]},
            "criteria[0].calls[0].tool_name: the world has no tool 'rm'",
        ),
        (
            {"fault_plan": [{"family": "timeouts"}]},
            "fault_plan[0].family: no fault family is called 'timeouts'; did you mean 'timeout'?",
        ),
        (
            {"fault_plan": [{"family": "timeout", "payload": {"timeout": 1}}]},
            "fault_plan[0].payload.timeout: is not a known key; did you mean 'timeout_ms'?",
        ),
        (
            {"fault_plan": [{"family": "rate_limit", "payload": {"retry_after_ms": -1}}]},
            "fault_plan[0].payload.retry_after_ms: should be greater than or equal to 0",
        ),
        (
            {"fault_plan": [{"family": "timeout", "trigger": {"on_tools": "x"}}]},
            "fault_plan[0].trigger.on_tools: is not a known key; did you mean 'on_tool'?",
        ),
        (
            {"fault_plan": [{"family": "timeout", "trigger": {"on_tool": "read_fil"}}]},
            "fault_plan[0].trigger.on_tool: the world has no tool 'read_fil'; "
            "did you mean 'read_file'?",
        ),
        (
            {"fault_plan": [{"family": "schema_drift", "payload": {"rename_args": {"pth": "p"}}}]},
            "fault_plan[0].payload.rename_args.pth: no tool has this argument; "
            "did you mean 'path'?",
        ),
        (
            {"fault_plan": [{"family": "schema_drift", "payload": {}}]},
            "fault_plan[0].payload: changes nothing; "
            "give rename_args, type_changes or add_required",
        ),
        (
            {"oracle": [{"submit": ""}, {"submit": ""}]},
            "oracle: must be calls followed by {'submit': text}",
        ),
        (
            {"solvable": False},
            "oracle: must be calls followed by {'give_up': text}, because solvable is False",
        ),
        (
            {"oracle": [{"tool_name": "x"}]},
            "oracle[0]: is not a move: give tool_name and args, or submit, or",
        ),
        ({"initial_state": {"files": []}}, "initial_state.files: must be an object"),
    ],
)
def test_an_invalid_record_is_reported_with_file_line_and_field(
    tmp_path: Path, change: dict[str, Any], line: str
) -> None:
    file = _write(tmp_path, RECORD, {**RECORD, "task_id": "second", **change})
    with pytest.raises(InputError) as refusal:
        load_cases(file)
    assert str(refusal.value).startswith(f"{file}:2: {line}")
    assert "\n" not in str(refusal.value)


def test_duplicate_task_ids_are_refused(tmp_path: Path) -> None:
    file = _write(tmp_path, RECORD, RECORD)
    with pytest.raises(InputError, match=r":2: task_id: 'mine' is already used at .*:1"):
        load_cases(file)


def test_a_file_without_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains no task"):
        load_cases(_write(tmp_path))


def test_a_rate_limit_may_ask_for_no_waiting_time(tmp_path: Path) -> None:
    fault = {"family": "rate_limit", "payload": {"retry_after_ms": 0}}
    (case,) = load_cases(_write(tmp_path, {**RECORD, "fault_plan": [fault]}))
    (refused, *_) = play_in_memory(case.task, case.gold.oracle or ()).calls
    assert refused.failure is not None
    assert refused.failure.details == {"retry_after_ms": 0}


def test_null_means_absent_in_faults(tmp_path: Path) -> None:
    fault = {
        "family": "adversarial_error",
        "trigger": {"on_tool": None},
        "payload": {"code": None},
    }
    (case,) = load_cases(_write(tmp_path, {**RECORD, "fault_plan": [fault]}))
    assert case.task.fault_plan[0].payload == {}


def test_the_json_schema_accepts_every_sample_task_and_no_unknown_key() -> None:
    validator = jsonschema_rs.validator_for(record_schema())
    records = [json.loads(line) for line in TASKS.read_text("utf-8").splitlines()]
    assert all(validator.is_valid(record) for record in records)
    assert not any(validator.is_valid({**record, "extra": 1}) for record in records)


def test_a_record_is_written_unchanged() -> None:
    lines = TASKS.read_text("utf-8").splitlines()
    written = [record_to_json(record.value) for record in read_tasks(TASKS)]
    assert written == [json.loads(line) for line in lines]


def test_formats_and_judges_support_the_same_operations() -> None:
    assert set(operations()) == {_literal(arm, "op") for arm in _arms(Criterion)}


def _arms(union: Any) -> tuple[Any, ...]:
    return get_args(get_args(union)[0])


def _literal(model: Any, field: str) -> str:
    (word,) = get_args(model.model_fields[field].annotation)
    return str(word)


def _write(folder: Path, *records: dict[str, Any]) -> Path:
    file = folder / "tasks.jsonl"
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return file
