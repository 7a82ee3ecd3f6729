"""MARBLE's scenarios through the real service, a box for every seat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.parts.commands import fumehood_json
from tests.unit.benchmarks.test_marble import BARGAINED, DIAGNOSED


def played(suite: str, out: Path, *words: str) -> Any:
    agents = ("-a", "oracle", "-a", "noop", "--engine", "process", "--json")
    return fumehood_json("run", suite, *agents, "--out", str(out), *words)


def successes(told: Any) -> dict[str, int]:
    return {agent["agent"]: agent["successes"] for agent in told["agents"]}


@pytest.mark.parametrize("record", [DIAGNOSED, BARGAINED], ids=["database", "bargaining"])
def test_an_oracle_solves_what_doing_nothing_does_not(
    tmp_path: Path, record: dict[str, Any]
) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(record) + "\n")
    told = played(f"marble:{record['scenario']}:{path}", tmp_path / "run")
    assert successes(told) == {"oracle": 1, "noop": 0}
    assert fumehood_json("score", str(tmp_path / "run"), "--json")["agents"] == told["agents"]
