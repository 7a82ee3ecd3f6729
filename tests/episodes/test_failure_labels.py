"""Eleven behaviours of agents and models get the right failure label, end to end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply, ToolUse
from tests.architecture.project import ROOT
from tests.parts.benchmark_data import SAMPLES
from tests.parts.commands import fumehood, fumehood_json
from tests.unit.benchmarks.test_marble import BARGAINED

pytestmark = pytest.mark.slow

TASKS = ROOT / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"
TURNS = 7
"""The scaffold's limit of replies; more than the usual task has steps."""

BEHAVIOURS: Mapping[str, tuple[ScriptedReply, str]] = {
    "malformed_arguments": (
        ScriptedReply(tools=(ToolUse("get_account", text="{not JSON"),)),
        "parsing",
    ),
    "own_turn_limit": (
        ScriptedReply(tools=(ToolUse("get_account", {"id": "a1042"}),)),
        "budget",
    ),
    "context_overflow": (
        ScriptedReply(status=400, error="This model's maximum context length is 8192 tokens."),
        "context_overflow",
    ),
    "unknown_tool": (ScriptedReply(tools=(ToolUse("perform_magic"),)), "tool_invocation"),
    "wrong_parameter": (
        ScriptedReply(tools=(ToolUse("get_account", {"name": "a1042"}),)),
        "tool_invocation",
    ),
    "same_call": (ScriptedReply(tools=(ToolUse("get_account", {"id": "a1042"}),)), "budget"),
    "claims_success": (ScriptedReply(text="Account a1042 is closed."), "reasoning"),
    "slow": (ScriptedReply(text="Wait.", pause_s=3600), "timeout"),
    "gives_up": (
        ScriptedReply(tools=(ToolUse("give_up", {"reason": "too difficult"}),)),
        "reasoning",
    ),
}
"""Task → the reply of the model to every request, and the label that the episode deserves."""


def _behave(asked: AskedOfModel) -> ScriptedReply:
    text = json.dumps(asked.request)
    named = (reply for name, (reply, _) in BEHAVIOURS.items() if f"[{name}]" in text)
    return next(named, ScriptedReply(text="Ready."))


def _task(name: str) -> str:
    record = json.loads(TASKS.read_text(encoding="utf-8").splitlines()[0])
    instruction = f"[{name}] {record['instruction']}"
    budget = {**record["budget"], "wall_ms": 3_000 if name == "slow" else 200_000}
    if name == "own_turn_limit":
        budget |= {"steps": 50, "calls": 50}
    return json.dumps({**record, "task_id": name, "instruction": instruction, "budget": budget})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    (folder / "tasks.jsonl").write_text("".join(f"{_task(name)}\n" for name in BEHAVIOURS))
    with ScriptedModels(_behave) as models:
        provider = {"name": "scripted", "address": models.address}
        config = {"models": {"providers": [provider], "parameters": {"*": {"turns": TURNS}}}}
        (folder / "run.yaml").write_text(yaml.safe_dump(config))
        command = ("run", str(folder / "tasks.jsonl"), "-a", "react", "--model", "m1")
        options = ("--engine", "process", "--config", str(folder / "run.yaml"), "-j", "3")
        # The status is 2, because one agent did not finish in time.
        fumehood(*command, *options, "--out", str(folder / "run"), status=2)
    return folder / "run"


@pytest.fixture(scope="module")
def labels(run: Path) -> Any:
    return fumehood_json("attribute", str(run), "--json")["episodes"]


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_a_scripted_model_gets_the_right_label(labels: Any, name: str) -> None:
    (why,) = (why for episode, why in labels.items() if f"/{name}" in episode)
    assert why["primary"] == BEHAVIOURS[name][1], why
    assert [sign for sign in why["signs"] if sign["label"] == why["primary"]]
    assert why["seats"]["agent"] == why["primary"]


@pytest.mark.parametrize(
    ("suite", "package"),
    [
        (f"dbbench:sqlite:{SAMPLES / 'dbbench.jsonl'}", None),
        ("agentdojo:slack", "agentdojo"),
        ("marble:bargaining:{folder}/bargained.jsonl", None),
    ],
)
def test_a_task_without_a_statement_is_solvable_if_its_oracle_solves_it(
    tmp_path: Path, suite: str, package: str | None
) -> None:
    if package and find_spec(package) is None:
        pytest.skip(f"{package} is not installed: scripts/setup-benchmarks")
    (tmp_path / "bargained.jsonl").write_text(json.dumps(BARGAINED) + "\n")
    (tmp_path / "run.yaml").write_text(yaml.safe_dump({"tasks": {"limit": 3}}))
    options = ("--engine", "inline", "--config", str(tmp_path / "run.yaml"))
    fumehood(
        "run", suite.format(folder=tmp_path), "-a", "noop", *options, "--out", str(tmp_path / "run")
    )
    why = fumehood_json("attribute", str(tmp_path / "run"), "--json")
    assert why["failed"] > 0
    assert why["labels"]["reasoning"]["primary"] == why["failed"]
