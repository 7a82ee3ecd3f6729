"""os_interaction in boxes: the original's checks decide."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.parts.commands import fumehood_json
from tests.parts.os_interaction import write_checkout

pytestmark = [pytest.mark.docker, pytest.mark.slow]


def run(suite: str, out: Path) -> dict[tuple[str, str], dict[str, object]]:
    agents = ("-a", "oracle", "-a", "noop", "--engine", "docker")
    words = ("run", f"os-interaction:{suite}", *agents, "--out", str(out), "--json")
    fumehood_json(*words, timeout_s=1200)
    rows = map(json.loads, (out / "episodes.jsonl").read_text("utf-8").splitlines())
    return {(row["agent"], row["task"]): row for row in rows}


def test_the_oracle_solves_each_kind_of_task_and_noop_none(tmp_path: Path) -> None:
    rows = run(str(write_checkout(tmp_path / "checkout")), tmp_path / "run")
    for (agent, _), row in rows.items():
        assert row["success"] is (agent == "oracle"), row
    assert {task for _, task in rows} == {f"std-001-own-{index}" for index in range(len(rows) // 2)}


def test_no_agent_solves_a_task_whose_setup_fails_and_the_row_has_its_output(
    tmp_path: Path,
) -> None:
    checkout = write_checkout(tmp_path / "checkout")
    for row in run(f"{checkout}:dev", tmp_path / "run").values():
        assert row["success"] is False, row
        assert "report this to its author: no such disk" in json.dumps(row)
