"""τ-bench through the real service: agent and user each have their own process."""

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

pytestmark = pytest.mark.slow

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


def successes(summary: Any) -> dict[str, int]:
    return {agent["agent"]: agent["successes"] for agent in summary["agents"]}


def test_the_oracle_and_the_no_op_have_the_expected_scores(tmp_path: Path) -> None:
    with short_folder() as place:
        suite = f"taubench:retail:{write_checkout(Path(place) / 'checkout')}"
        words = ("run", suite, "-a", "oracle", "-a", "noop", "--engine", "inline", "--json")
        summary = fumehood_json(*words, "--out", str(tmp_path / "run"))
        assert successes(summary) == {"oracle": 2, "noop": 1}
        assert summary["noop"]["solved"] == 1
        assert (
            fumehood_json("score", str(tmp_path / "run"), "--json")["agents"] == summary["agents"]
        )


def test_an_agent_talks_to_a_scripted_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        summary = fumehood_json(*words, "--out", str(tmp_path / "run"))
    assert successes(summary) == {"helpful:Agent": 1}
    (trace,) = (tmp_path / "run" / "traces").glob("*/retail_test_0.0.jsonl")
    events = [json.loads(line)["event"] for line in trace.read_text().splitlines()]
    received = [
        event["text"]
        for event in events
        if event["kind"] == "turn_began" and event["seat"] == "agent"
    ]
    assert received == ["You want o1 cancelled.", "Yes, please go ahead.", "Yes, please go ahead."]


def as_models(asked: AskedOfModel) -> ScriptedReply:
    """Reply as a user who wants o1 cancelled, or as an agent that cancels it."""
    turns = sum(message["role"] == "assistant" for message in asked.request["messages"])
    if asked.request["model"] == "m-user":
        return ScriptedReply(text="Cancel o1, please." if turns == 0 else "###STOP###")
    if turns == 0:
        return ScriptedReply(tools=(ToolUse("cancel", {"order_id": "o1"}),))
    return ScriptedReply(text="o1 is cancelled.")


def test_two_models_talk_to_each_other(tmp_path: Path) -> None:
    with short_folder() as place, ScriptedModels(as_models) as models:
        suite = f"taubench:retail:{write_checkout(Path(place) / 'checkout')}"
        providers = [{"name": "scripted", "address": models.address}]
        config = {"models": {"probe": False, "providers": providers}}
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
        summary = fumehood_json(
            *words,
            "--engine",
            "process",
            "--config",
            str(tmp_path / "run.yaml"),
            "--out",
            str(tmp_path / "run"),
        )
    assert successes(summary) == {"react": 1}, "the other task requires no cancellation"
    user_requests = [
        asked.body.decode() for asked in models.asked if asked.request["model"] == "m-user"
    ]
    assert all("You want o1 cancelled." in body for body in user_requests)
    assert not any("Cancel nothing twice." in body for body in user_requests)
