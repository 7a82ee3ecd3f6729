"""MARBLE through the real service, with one box per seat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.parts.commands import fumehood_json
from tests.unit.benchmarks.test_marble import BARGAINED


def run_marble(suite: str, out: Path, *words: str) -> Any:
    agents = ("-a", "oracle", "-a", "noop", "--engine", "inline", "--json")
    return fumehood_json("run", suite, *agents, "--out", str(out), *words)


def successes(summary: Any) -> dict[str, int]:
    return {agent["agent"]: agent["successes"] for agent in summary["agents"]}


def test_the_oracle_reaches_an_agreement_and_the_no_op_does_not(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(BARGAINED) + "\n")
    summary = run_marble(f"marble:bargaining:{path}", tmp_path / "run")
    assert successes(summary) == {"oracle": 1, "noop": 0}
    rescored = fumehood_json("score", str(tmp_path / "run"), "--json")
    assert rescored["agents"] == summary["agents"]
