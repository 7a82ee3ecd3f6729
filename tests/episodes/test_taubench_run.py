"""τ-bench through the real service: an agent and its user, each in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.parts.commands import glovebox_json
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
        told = glovebox_json(*words, "--out", str(tmp_path / "run"))
        assert successes(told) == {"oracle": 2, "noop": 1}
        assert told["noop"]["solved"] == 1
        assert glovebox_json("score", str(tmp_path / "run"), "--json")["agents"] == told["agents"]


def test_an_agent_talks_to_a_user_who_follows_a_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helpful.py").write_text(HELPFUL)
    with short_folder() as place:
        suite = f"taubench:retail:{write_checkout(Path(place) / 'checkout')}"
        words = ("run", suite, "-a", "helpful:Agent", "--engine", "process", "--i-trust-this-agent", "--json")
        told = glovebox_json(*words, "--out", str(tmp_path / "run"))
    assert successes(told) == {"helpful:Agent": 1}
    (trace,) = (tmp_path / "run" / "traces").glob("*/retail_test_0.0.jsonl")
    events = [json.loads(line)["event"] for line in trace.read_text().splitlines()]
    heard = [event["text"] for event in events if event["kind"] == "turn_began" and event["seat"] == "agent"]
    assert heard == ["You want o1 cancelled.", "Yes, please go ahead.", "Yes, please go ahead."]
