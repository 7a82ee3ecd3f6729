"""A run can add fault rules to the tasks of any benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.errors import InputError
from fumehood.core.json_values import canonical_json
from fumehood.core.task import Suite
from fumehood.orchestrator.added_faults import with_faults
from fumehood.records.frozen_suite import freeze_suite
from fumehood.records.run_reader import RunReader
from fumehood.report.summary import run_digest
from tests.parts.benchmark_data import SAMPLES
from tests.parts.memory_runs import builtin, play_run

TIMEOUT = """\
format: fumehood.faults/1
faults:
  - family: timeout
    trigger: {on_tool: execute_sql, on_nth_call: 1}
    payload: {timeout_ms: 2000}
"""


@pytest.fixture
def suite() -> Suite:
    """A benchmark whose tasks plan no faults."""
    return load_suite(str(SAMPLES / "dbbench.jsonl"))


def _plan(folder: Path, text: str) -> str:
    file = folder / "plan.yaml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def _digest(folder: RunReader) -> str:
    rows = folder.rows()
    return run_digest(rows, sorted(str(row.name) for row in rows))


@pytest.mark.slow
def test_an_intensity_multiplies_the_probability_and_a_fault_that_fires_at_one_fires_above_it(
    suite: Suite, tmp_path: Path
) -> None:
    file = _plan(tmp_path, "format: fumehood.faults/1\nfaults: [{family: timeout}]\n")
    (case, *_) = suite.cases
    call: Move = {"tool_name": "execute_sql", "args": {"sql": "SELECT 1"}}
    fired = []
    for intensity in (0.0, 0.3, 0.6, 1.0):
        (changed, *_) = with_faults(suite, file, intensity).cases
        assert changed.task.fault_plan[-1].trigger == {"prob": intensity}
        calls = play_in_memory(changed.task, [call] * 4).calls
        fired.append({number for number, made in enumerate(calls) if made.fired_rules})
    assert fired[0] == set()
    assert fired[0] <= fired[1] <= fired[2] <= fired[3]
    assert fired[3]
    assert case.task.fault_plan == ()


def test_an_intensity_without_a_file_of_faults_is_refused(suite: Suite) -> None:
    with pytest.raises(InputError, match="fault_intensity has no effect without a file"):
        with_faults(suite, "none", 0.5)


def test_none_adds_no_faults(suite: Suite, tmp_path: Path) -> None:
    for file in (None, "none"):
        assert freeze_suite(with_faults(suite, file)) == freeze_suite(suite)
    alone, none = (
        play_run(tmp_path / name, tasks, {"heuristic": builtin("heuristic")})
        for name, tasks in (("alone", suite), ("none", with_faults(suite, "none")))
    )
    assert _digest(alone) == _digest(none)


def test_a_rule_fires_in_every_task(suite: Suite, tmp_path: Path) -> None:
    changed = with_faults(suite, _plan(tmp_path, TIMEOUT))
    for case in changed.cases:
        evidence = play_in_memory(
            case.task, [{"tool_name": "execute_sql", "args": {"query": "SELECT 1"}}] * 2
        )
        first, second = evidence.calls
        assert first.failure is not None
        assert first.failure.code == "timeout"
        assert second.failure is None
        assert evidence.fire_counts == (1,)


def test_added_rules_follow_the_rules_of_a_task(tmp_path: Path) -> None:
    plan = _plan(tmp_path, "format: fumehood.faults/1\nfaults: [{family: rate_limit}]\n")
    for before, after in zip(
        load_suite("sample").cases, with_faults(load_suite("sample"), plan).cases, strict=True
    ):
        own, both = before.task.fault_plan, after.task.fault_plan
        assert canonical_json([rule.to_json() for rule in own]) == canonical_json(
            [rule.to_json() for rule in both[:-1]]
        )
        assert (both[-1].family, both[-1].index) == ("rate_limit", len(own))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("faults: []", "format"),
        ("- 1", "must contain 'format: fumehood.faults/1'"),
        ("a: [", "plan.yaml:1"),
        (TIMEOUT.replace("timeout_ms", "timeout_s"), "timeout_s.*timeout_ms"),
        (
            TIMEOUT.replace("family: timeout", "family: timeuot"),
            "no fault family is called 'timeuot'; did you mean 'timeout'",
        ),
        (
            TIMEOUT.replace("execute_sql", "execute_sq"),
            "no task of .* has a tool 'execute_sq'; .*execute_sql",
        ),
        (TIMEOUT + "    severity: hard\n", "severity"),
        (TIMEOUT.replace("2000", "-1"), "timeout_ms"),
    ],
)
def test_an_invalid_file_gives_one_line_with_its_name(
    suite: Suite, tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(InputError, match=reason) as raised:
        with_faults(suite, _plan(tmp_path, text))
    assert "plan.yaml" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_an_input_error(suite: Suite, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        with_faults(suite, str(tmp_path / "nothing.yaml"))
