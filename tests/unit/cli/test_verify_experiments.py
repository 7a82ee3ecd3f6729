"""`verify` checks the plan and all runs of an experiment."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fumehood.cli.verify import verify
from fumehood.orchestrator.experiment import ExperimentConfig, freeze, plan_of
from fumehood.records.signing_key import KEY_VARIABLE, user_key
from tests.parts.sealed_runs import NAMES, finished_run, new_run, play

SETTINGS: dict[str, Any] = {
    "format": "fumehood.experiment/1",
    "suites": ["sample"],
    "agents": ["noop"],
    "budgets": ["own", {"calls": 1}],
    "run": {"engine": "inline"},
}
PLAN = plan_of(ExperimentConfig.model_validate(SETTINGS))
FIRST, SECOND = (cell.name for cell in PLAN.cells)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An experiment of two finished runs, signed with the key of the user."""
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "key.pem"))
    (tmp_path / "experiment").mkdir()
    freeze(PLAN, tmp_path / "experiment")
    for name in (FIRST, SECOND):
        finished_run(tmp_path / "experiment" / "runs" / name, user_key())
    return tmp_path / "experiment"


def verified(folder: Path, *options: str, status: int = 0) -> str:
    result: Result = CliRunner().invoke(verify, [str(folder), *options], standalone_mode=False)
    assert result.return_value == status, result.output
    return result.output


def verified_json(folder: Path, *options: str, status: int = 0) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(verified(folder, "--json", *options, status=status))
    return report


def test_an_unchanged_experiment_is_sound(folder: Path) -> None:
    key = user_key().public
    assert verified(folder).splitlines() == [
        f"{folder}/runs/{name}: sound: 3 episodes, signed with {key} (your key)"
        for name in (FIRST, SECOND)
    ] + ["sound: 2 of 2 runs"]
    report = verified_json(folder, "--key", key)
    assert (report["sound"], report["plan_signed"]) == (True, True)
    assert [run["signer"] for run in report["runs"]] == ["the expected key"] * 2


def test_damage_of_any_run_is_listed_with_its_folder(folder: Path) -> None:
    (folder / "runs" / SECOND / "traces" / "agent" / "t2.0.jsonl").unlink()
    lines = verified(folder, status=1).splitlines()
    assert f"{folder}/runs/{SECOND}: traces/agent/t2.0.jsonl: missing" in lines
    assert lines[-1] == "sound: 1 of 2 runs"
    report = verified_json(folder, status=1)
    assert (report["sound"], [run["sound"] for run in report["runs"]]) == (False, [True, False])


def test_runs_that_are_not_finished_are_listed_with_the_remedy(folder: Path) -> None:
    for name in (FIRST, SECOND):
        shutil.rmtree(folder / "runs" / name)
    play(new_run(folder / "runs" / SECOND, user_key()), NAMES[0])
    assert verified(folder, status=1).splitlines() == [
        f"{folder}/runs/{FIRST}: run.json: the run has not begun; "
        f"continue with: fumehood resume {folder}",
        f"{folder}/runs/{SECOND}: unfinished: 1 of 3 episodes; "
        f"continue with: fumehood resume {folder}/runs/{SECOND}",
        "sound: 0 of 2 runs",
    ]


def test_a_changed_plan_is_damage(folder: Path) -> None:
    plan = json.loads((folder / "experiment.json").read_text())
    plan["cells"][0]["config"]["concurrency"] = 9
    (folder / "experiment.json").write_text(json.dumps(plan))
    lines = verified(folder, status=1).splitlines()
    assert f"{folder}/experiment.json: edited, or not signed with the key of its runs" in lines
    assert lines[-1] == "sound: 2 of 2 runs"
    report = verified_json(folder, status=1)
    assert (report["sound"], report["plan_signed"]) == (False, False)


def test_runs_of_another_key_are_not_those_that_are_expected(folder: Path) -> None:
    assert "signed with" in verified(folder, "--key", "0" * 64, status=1)
