"""τ-bench through the real service: an agent and its user, each in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply, ToolUse
from tests.parts.commands import fumehood_json
from tests.parts.folders import short_folder
from tests.parts.taubench import write_checkout

HELPFUL = """
class Agent:
    def run(self, session):
        assert "Cancel nothing twice." in session.task.instruction
        assert "You want o1 cancelled." in session.task.instruction
        session.call("cancel", {"order_id": "o1"})
        session.submit("I have cancelled o1.")
        while not session.ended:
            session.submit(f"You said: {session.task.instruction}")
"""


def successes(told: Any) -> dict[str, int]:
    return {agent["agent"]: agent["successes"] for agent in told["agents"]}


def test_oracle_and_no_op_score_what_they_must(tmp_path: Path) -> None:
    with short_folder() as place:
        suite = f"taubench:retail:{write_checkout(Path(place) / 'checkout')}"
        words = ("run", suite, "-a", "oracle", "-a", "noop", "--engine", "process", "--json")
        told = fumehood_json(*words, "--out", str(tmp_path / "run"))
        assert successes(told) == {"oracle": 2, "noop": 1}
        assert told["noop"]["solved"] == 1
        assert fumehood_json("score", str(tmp_path / "run"), "--json")["agents"] == told["agents"]


def test_an_agent_talks_to_a_user_who_follows_a_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helpful.py").write_text(HELPFUL)
    with short_folder() as place:
        suite = f"taubench:retail:{write_checkout(Path(place) / 'checkout')}"
        words = (
            "run",
            suite,
            "-a",
            "helpful:Agent",
            "--engine",
            "process",
            "--i-trust-this-agent",
            "--json",
        )
        told = fumehood_json(*words, "--out", str(tmp_path / "run"))
    assert successes(told) == {"helpful:Agent": 1}
    (trace,) = (tmp_path / "run" / "traces").glob("*/retail_test_0.0.jsonl")
    events = [json.loads(line)["event"] for line in trace.read_text().splitlines()]
    heard = [
        event["text"]
        for event in events
        if event["kind"] == "turn_began" and event["seat"] == "agent"
    ]
    assert heard == ["You want o1 cancelled.", "Yes, please go ahead.", "Yes, please go ahead."]


def as_models(asked: AskedOfModel) -> ScriptedReply:
    """A user who wants o1 cancelled and hangs up when it is, and an agent that does what it is asked."""
    turns = sum(message["role"] == "assistant" for message in asked.request["messages"])
    if asked.request["model"] == "m-user":
        return ScriptedReply(text="Cancel o1, please." if turns == 0 else "###STOP###")
    if turns == 0:
        return ScriptedReply(tools=(ToolUse("cancel", {"order_id": "o1"}),))
    return ScriptedReply(text="o1 is cancelled.")


def test_a_model_talks_to_a_model(tmp_path: Path) -> None:
    with short_folder() as place, ScriptedModels(as_models) as models:
        suite = f"taubench:retail:{write_checkout(Path(place) / 'checkout')}"
        config = {"models": {"providers": [{"name": "scripted", "address": models.address}]}}
        (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
        words = (
            "run",
            suite,
            "-a",
            "react",
            "--model",
            "m-agent",
            "--seat",
            "user=react,m-user",
            "--json",
        )
        told = fumehood_json(
            *words,
            "--engine",
            "process",
            "--config",
            str(tmp_path / "run.yaml"),
            "--out",
            str(tmp_path / "run"),
        )
    assert successes(told) == {"react": 1}, "the other task wants nothing cancelled"
    told_to_user = [
        asked.body.decode() for asked in models.asked if asked.request["model"] == "m-user"
    ]
    assert all("You want o1 cancelled." in body for body in told_to_user)
    assert not any("Cancel nothing twice." in body for body in told_to_user)
