"""MARBLE through the real service, with one box per seat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.parts.commands import fumehood_json
from tests.parts.marble import record, write_checkout
from tests.unit.benchmarks.test_marble import BARGAINED


def run_marble(suite: str, out: Path, *words: str) -> Any:
    agents = ("-a", "oracle", "-a", "noop", "--engine", "inline", "--json")
    return fumehood_json("run", suite, *agents, "--out", str(out), *words)


def successes(summary: Any) -> dict[str, int]:
    return {agent["agent"]: agent["successes"] for agent in summary["agents"]}


@pytest.mark.slow
def test_the_oracle_reaches_an_agreement_and_the_no_op_does_not(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(BARGAINED) + "\n")
    summary = run_marble(f"marble:bargaining:{path}", tmp_path / "run")
    assert successes(summary) == {"oracle": 1, "noop": 0}
    rescored = fumehood_json("score", str(tmp_path / "run"), "--json")
    assert rescored["agents"] == summary["agents"]


@pytest.mark.slow
def test_tables_show_the_task_completion_score_and_the_milestones(tmp_path: Path) -> None:
    checkout = write_checkout(tmp_path / "checkout", record("research"))
    reply = '{"innovation": 5, "safety": 4, "feasibility": 3}'
    rules = [
        {"answer": '[{"milestone": "an idea", "agents": ["agent1"]}]', "criterion": "milestones"},
        {"answer": reply},
    ]
    config = tmp_path / "judge.json"
    config.write_text(json.dumps({"judge": "rules", "judging": {"rules": rules}}))
    out = tmp_path / "run"
    summary = run_marble(f"marble:research:{checkout}", out, "--config", str(config))
    assert successes(summary) == {"oracle": 1, "noop": 0}
    shown = [(agent["task_completion"], agent["milestones"]) for agent in summary["agents"]]
    assert shown == [(0.8, 1), (0, 1)]
    ranked = fumehood_json("leaderboard", str(out), "--json")
    assert [line["task_completion"] for line in ranked] == [0.8, 0]
