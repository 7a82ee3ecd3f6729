"""A judge labels the failures that no rule explains, and never overrules a rule."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from fumehood.cli.attribute import attribute
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.ledger import Budget
from fumehood.core.task import Case, Suite, Task
from fumehood.records.run_reader import RunReader
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply
from tests.parts.memory_runs import play_run


def _case(task_id: str, solvable: bool | None) -> Case:
    task = Task(
        task_id=task_id,
        world="crud",
        harness_mode="native",
        initial_state={"accounts": {"a1": {"id": "a1", "tier": "basic"}}},
        fault_plan=(),
        seed=1,
        seats=(SeatSpec(instruction="Move a1 to gold.", budget=Budget(steps=9)),),
        tags={},
    )
    criteria = ({"op": "equals", "path": "accounts.a1.tier", "value": "gold"},)
    return Case(task, Gold("native", criteria, solvable))


@pytest.fixture
def run(tmp_path: Path) -> RunReader:
    """A run of one task that is not proven to be solvable, and of one that is."""
    suite = Suite("two", (_case("unproven", None), _case("solvable", True)))
    return play_run(tmp_path / "run", suite, {"one": lambda seat: seat.submit("Done.")})


def _episodes(run: RunReader, *words: str) -> Any:
    done = CliRunner().invoke(
        attribute, [str(run.path), "--json", *words], catch_exceptions=False, standalone_mode=False
    )
    return json.loads(done.stdout)


def test_without_a_judge_an_unproven_task_is_unattributed(run: RunReader) -> None:
    found = _episodes(run)
    assert found["episodes"]["one/unproven/0"]["primary"] == "unattributed"
    assert found["judge"] == {}


def test_the_majority_of_samples_labels_what_no_rule_explains(
    run: RunReader, tmp_path: Path
) -> None:
    asked: list[str] = []

    def says(request: AskedOfModel) -> ScriptedReply:
        text = request.request["messages"][1]["content"]
        number = re.search(r"<<<([0-9a-f]{32}) ", text)
        assert number is not None
        asked.append(text)
        answer = "budget" if len(asked) == 2 else "reasoning"
        return ScriptedReply(text=f"Hm.\n[{number[1]}] {answer}")

    config = tmp_path / "judge.yaml"
    with ScriptedModels(says) as models:
        provider = {"name": "scripted", "address": models.address, "models": ["j*"]}
        config.write_text(yaml.safe_dump({"models": {"providers": [provider]}}))
        found = _episodes(run, "--judge", "j1", "--config", str(config))
    assert len(asked) == 3, "the judge is not asked about the failure that a rule explains"
    assert "Move a1 to gold." in asked[0]
    why = found["episodes"]["one/unproven/0"]
    assert why["primary"] == "reasoning"
    assert why["signs"][-1]["what"] == "the judge, in 2 of 3 samples"
    assert found["judge"]["judge_agreement"] == pytest.approx(1 / 3)


def test_settings_of_a_judge_need_a_judge(run: RunReader, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--config has no effect without --judge"):
        _episodes(run, "--config", str(tmp_path / "judge.yaml"))
