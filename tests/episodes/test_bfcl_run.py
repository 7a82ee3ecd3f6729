"""BFCL through the real service, with an agent that sends model requests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply, ToolUse
from tests.architecture.project import ROOT
from tests.parts.installed import installed
from tests.parts.models import KEY

installed("bfcl_eval", "mpmath")


def calls_two_functions_again_and_again(asked: AskedOfModel) -> ScriptedReply:
    name = asked.request["tools"][0]["function"]["name"]
    return ScriptedReply(tools=(ToolUse(name), ToolUse("invented")))


@pytest.mark.slow
def test_a_single_turn_category_ends_after_the_first_model_message(tmp_path: Path) -> None:
    with ScriptedModels(calls_two_functions_again_and_again) as models:
        provider = {"name": "scripted", "address": models.address, "key_env": "SCRIPTED_KEY"}
        (tmp_path / "run.yaml").write_text(
            yaml.safe_dump({"models": {"providers": [provider], "probe": False}})
        )
        words = ("run", "bfcl:live_relevance", "-a", "react", "--model", "m1", "--json")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "fumehood", *words, "--engine", "process"),
                *("--config", str(tmp_path / "run.yaml"), "--out", str(tmp_path / "run")),
            ],
            cwd=ROOT,
            env={**os.environ, "SCRIPTED_KEY": KEY},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "run" / "episodes.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 16
    assert {row["success"] for row in rows} == {True}
    assert {row["outcome"] for row in rows} == {"out_of_budget(model_calls)"}
    (agent,) = json.loads(done.stdout)["agents"]
    assert agent["successes"] == 16
