"""ToolSandbox through the real service, on a generated checkout and on the user's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply, ToolUse
from tests.parts.commands import fumehood_json, run_fumehood
from tests.parts.folders import short_folder
from tests.parts.toolsandbox import write_checkout

pytestmark = pytest.mark.slow

engines = pytest.mark.parametrize(
    "engine", ["inline", pytest.param("bubblewrap", marks=pytest.mark.bubblewrap)]
)


def _successes(suite: str, out: Path, engine: str) -> dict[str, int]:
    words = ("run", suite, "-a", "oracle", "-a", "noop", "--engine", engine, "--json")
    summary = fumehood_json(*words, "--out", str(out))
    assert fumehood_json("score", str(out), "--json")["agents"] == summary["agents"]
    return {agent["agent"]: agent["successes"] for agent in summary["agents"]}


@engines
def test_the_oracle_and_the_no_op_have_the_expected_scores(tmp_path: Path, engine: str) -> None:
    with short_folder() as place:
        suite = f"toolsandbox:base:{write_checkout(Path(place) / 'checkout')}"
        scores = _successes(suite, tmp_path / "run", engine)
    assert scores == {"oracle": 3, "noop": 1}


def as_models(asked: AskedOfModel) -> ScriptedReply:
    """Reply as an agent that turns wifi off, or as a user who then ends the conversation."""
    turns = sum(message["role"] == "assistant" for message in asked.request["messages"])
    if asked.request["model"] == "m-user":
        return ScriptedReply(tools=(ToolUse("end_conversation", {}),))
    if turns == 0 and "Turn off wifi" in asked.body.decode():
        return ScriptedReply(tools=(ToolUse("set_wifi_status", {"on": False}),))
    return ScriptedReply(text="Wifi is off")


def test_a_model_has_the_seat_of_the_user(tmp_path: Path) -> None:
    with short_folder() as place, ScriptedModels(as_models) as models:
        suite = f"toolsandbox:base:{write_checkout(Path(place) / 'checkout')}"
        providers = [{"name": "scripted", "address": models.address}]
        config = {"models": {"probe": False, "providers": providers}}
        (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
        words = ("run", suite, "-a", "react", "--model", "m-agent", "--seat", "user=react,m-user")
        place_words = ("--config", str(tmp_path / "run.yaml"), "--out", str(tmp_path / "run"))
        summary = fumehood_json(*words, "--engine", "process", "--json", *place_words)
    assert [agent["successes"] for agent in summary["agents"]] == [2], "not the task about time"


def test_a_missing_package_is_one_line_and_status_two() -> None:
    with short_folder() as place:
        checkout = write_checkout(Path(place) / "checkout")
        (checkout / "packages" / "dill.py").unlink()
        done = run_fumehood("suite", "info", f"toolsandbox:{checkout}")
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert "No module named 'dill'" in line
    assert "page of toolsandbox" in line


@pytest.mark.slow
def test_tasks_of_the_published_checkout_are_solved_by_their_derived_solutions(
    tmp_path: Path,
) -> None:
    checkout = Path(os.environ.get("FUMEHOOD_ORIGINALS", ".originals"), "ToolSandbox")
    if not (checkout / "packages").exists():
        pytest.skip(f"no {checkout}/packages: scripts/setup-originals toolsandbox")
    suite = f"toolsandbox:base:{checkout.absolute()}"
    assert _successes(suite, tmp_path / "run", "inline") == {"oracle": 91, "noop": 16}
