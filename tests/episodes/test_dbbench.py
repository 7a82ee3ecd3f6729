"""dbbench through the real service: scores, and equal digests for any number of workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.parts.benchmark_data import SAMPLES
from tests.parts.commands import fumehood_json

pytestmark = pytest.mark.slow

SUITE = f"dbbench:sqlite:{SAMPLES / 'dbbench.jsonl'}"
TIMEOUT = (
    "format: fumehood.faults/1\nfaults: [{family: timeout, trigger: {on_tool: execute_sql}}]\n"
)


def _run(out: Path, *words: str) -> Any:
    return fumehood_json("run", SUITE, "--engine", "inline", "--out", str(out), "--json", *words)


def _solved(summary: Any) -> dict[str, int]:
    return {agent["agent"]: agent["successes"] for agent in summary["agents"]}


@pytest.fixture(scope="module")
def sequential(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The summary of the oracle and the no-op with one worker."""
    return _run(
        tmp_path_factory.mktemp("sequential") / "run", "-a", "oracle", "-a", "noop", "-j", "1"
    )


def test_the_oracle_solves_all_tasks_and_the_no_op_none(sequential: Any) -> None:
    assert _solved(sequential) == {"oracle": 5, "noop": 0}
    assert sequential["noop"] == {"solved": 0, "graded": 5, "ungraded": 0, "success_rate": 0.0}
    assert sequential["infra"] == 0


def test_four_workers_give_the_same_trace_digest(sequential: Any, tmp_path: Path) -> None:
    words = ("-a", "oracle", "-a", "noop", "-j", "4", "--service-workers", "2", "--faults", "none")
    assert _run(tmp_path / "run", *words)["trace_digest"] == sequential["trace_digest"]


def test_a_failed_attempt_does_not_affect_the_next_one(tmp_path: Path) -> None:
    summary = _run(tmp_path / "run", "-a", "heuristic", "-a", "oracle", "-j", "1", "-n", "2")
    assert _solved(summary) == {"heuristic": 0, "oracle": 10}


def test_faults_of_a_plan_fire_and_are_counted(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(TIMEOUT, encoding="utf-8")
    summary = _run(tmp_path / "run", "-a", "oracle", "--faults", str(plan))
    (oracle,) = summary["agents"]
    # A question needs no call, so no fault fires in its episode.
    assert (oracle["successes"], oracle["faulted"], oracle["recovered"]) == (3, 2, 0)
    frozen = (tmp_path / "run" / "suite.jsonl").read_text(encoding="utf-8").splitlines()
    assert all(json.loads(line)["fault_plan"] for line in frozen)
