"""dbbench through the real service: its oracle right, nothing else; the same again in any number of ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.parts.benchmark_data import SAMPLES
from tests.parts.commands import fumehood_json

SUITE = f"dbbench:{SAMPLES / 'dbbench.jsonl'}"
TIMEOUT = (
    "format: fumehood.faults/1\nfaults: [{fault_type: timeout, trigger: {on_tool: execute_sql}}]\n"
)


def _run(out: Path, *words: str) -> Any:
    return fumehood_json("run", SUITE, "--engine", "process", "--out", str(out), "--json", *words)


def _solved(told: Any) -> dict[str, int]:
    return {agent["agent"]: agent["successes"] for agent in told["agents"]}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The oracle and an agent that does nothing, one after the other."""
    return _run(tmp_path_factory.mktemp("alone") / "run", "-a", "oracle", "-a", "noop", "-j", "1")


def test_the_oracle_solves_all_and_doing_nothing_none(alone: Any) -> None:
    assert _solved(alone) == {"oracle": 5, "noop": 0}
    assert alone["noop"] == {"solved": 0, "graded": 5, "ungraded": 0, "success_rate": 0.0}
    assert alone["infra"] == 0


def test_four_workers_and_no_faults_tell_the_same_story(alone: Any, tmp_path: Path) -> None:
    words = ("-a", "oracle", "-a", "noop", "-j", "4", "--service-workers", "2", "--faults", "none")
    assert _run(tmp_path / "run", *words)["trace_digest"] == alone["trace_digest"]


def test_a_task_that_somebody_failed_before_is_whole_again(tmp_path: Path) -> None:
    told = _run(tmp_path / "run", "-a", "heuristic", "-a", "oracle", "-j", "1", "-n", "2")
    assert _solved(told) == {"heuristic": 0, "oracle": 10}


def test_a_plan_strikes_and_is_counted(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(TIMEOUT, encoding="utf-8")
    told = _run(tmp_path / "run", "-a", "oracle", "--faults", str(plan))
    (oracle,) = told["agents"]
    # What asks a question needs no call, so nothing strikes it.
    assert (oracle["successes"], oracle["faulted"], oracle["recovered"]) == (3, 2, 0)
    frozen = (tmp_path / "run" / "suite.jsonl").read_text(encoding="utf-8").splitlines()
    assert all(json.loads(line)["fault_plan"] for line in frozen)
