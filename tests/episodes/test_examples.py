"""The files in examples/ work together as their README states."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.architecture.project import ROOT
from tests.parts.commands import run_fumehood


def _fumehood(folder: Path, *arguments: str) -> str:
    done = run_fumehood(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_example_agent_solves_the_example_tasks(tmp_path: Path) -> None:
    folder = shutil.copytree(ROOT / "examples", tmp_path / "examples")
    assert "2 solved by the oracle" in _fumehood(folder, "suite", "validate", "tasks.json")
    assert "5 solved by the oracle" in _fumehood(folder, "suite", "validate", "library.yaml")
    assert "1 solved by the oracle" in _fumehood(folder, "suite", "validate", "water_works.yaml")
    assert "1 solved by the oracle" in _fumehood(folder, "suite", "validate", "support.yaml")
    assert "1 solved by the oracle" in _fumehood(folder, "suite", "validate", "payments.yaml")
    engine = ("--engine", "process", "--i-trust-this-agent")
    printed = json.loads(_fumehood(folder, "run", "--config", "run.yaml", *engine, "--json"))
    success = {agent["agent"]: agent["success_rate"] for agent in printed["agents"]}
    assert success["mine"] == 1.0


@pytest.mark.slow
def test_the_example_team_plays_the_sample_with_three_workers(tmp_path: Path) -> None:
    folder = shutil.copytree(ROOT / "examples", tmp_path / "examples")
    settings = (folder / "team.yaml").read_text() + "tasks: {names: [crud_close_relocation]}\n"
    (folder / "team.yaml").write_text(settings)
    engine = ("--engine", "process", "--i-trust-this-agent")
    printed = json.loads(
        _fumehood(folder, "run", "--config", "team.yaml", *engine, "--out", "run", "--json")
    )
    assert [agent["success_rate"] for agent in printed["agents"]] == [1.0]
    metrics = json.loads((folder / "run" / "episodes.jsonl").read_text())["metrics"]
    assert (metrics["turns"], metrics["messages"], metrics["idle_seats"]) == (2, 1, 2)
    alone = "suite: sample\nbudget: {scale: 4}\ntasks: {names: [crud_close_relocation]}\n"
    (folder / "alone.yaml").write_text(alone)
    words = ("-a", "policy_aware", "--engine", "inline", "--out", "alone")
    _fumehood(folder, "run", "--config", "alone.yaml", *words)
    (comparison,) = json.loads(_fumehood(folder, "compare", "alone", "run", "--json"))[
        "comparisons"
    ]
    assert [comparison[side]["agent"] for side in ("first", "second")] == ["policy_aware", "team"]
    assert comparison["pairs"] == 1
