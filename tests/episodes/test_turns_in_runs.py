"""Users with several messages in whole runs: record, service, both kinds of agents, replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.parts.commands import fumehood, fumehood_json

TALK: dict[str, Any] = {
    "format": "fumehood.task/1",
    "task_id": "talk",
    "world": "files",
    "instruction": "Write the word one into /a.txt.",
    "further_turns": [
        {"instruction": "Now read it.", "tools": ["read_file"]},
        {"instruction": "Write the word two into /b.txt."},
    ],
    "initial_state": {"files": {}},
    "budget": {"steps": 9, "calls": 9, "retries": 2},
    "criteria": [
        {"op": "map_value_equals", "path": "files", "key": "/a.txt", "value": "one"},
        {"op": "map_value_equals", "path": "files", "key": "/b.txt", "value": "two"},
    ],
    "solvable": True,
    "oracle": [
        {"tool_name": "write_file", "args": {"path": "/a.txt", "content": "one"}},
        {"submit": "written"},
        {"tool_name": "read_file", "args": {"path": "/a.txt"}},
        {"submit": "one"},
        {"tool_name": "write_file", "args": {"path": "/b.txt", "content": "two"}},
        {"submit": "written"},
    ],
}

ONE_AT_A_TIME = """
class Writer:
    def run(self, session):
        words = session.task.instruction.split()
        if words[0] == "Write":
            session.call("write_file", {"path": words[-1].rstrip("."), "content": words[3]})
        else:
            assert "read_file" in [tool.name for tool in session.task.tools]
"""

LISTENER = """
class Writer:
    def reset(self):
        self.done = 0

    def act(self, observation):
        turn = len(observation.get("earlier_turns", []))
        words = observation["instruction"].split()
        if words[0] != "Write" or self.done > turn:
            return None
        self.done = turn + 1
        arguments = {"path": words[-1].rstrip("."), "content": words[3]}
        return {"tool_name": "write_file", "args": arguments}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "talk.jsonl"
    path.write_text(json.dumps(TALK) + "\n", encoding="utf-8")
    return path


def test_the_oracle_solves_the_task(suite: Path) -> None:
    report = fumehood_json("suite", "validate", str(suite), "--json")
    assert (report["tasks"], report["oracles_proven"]) == (1, 1)


@pytest.mark.slow
def test_the_oracle_plays_all_turns_and_a_replay_is_identical(suite: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    words = (
        "run",
        str(suite),
        "-a",
        "oracle",
        "-a",
        "noop",
        "--engine",
        "inline",
        "--json",
        "--out",
        out,
    )
    successes = {agent["agent"]: agent["successes"] for agent in fumehood_json(*words)["agents"]}
    assert successes == {"oracle": 1, "noop": 0}
    assert "turn 1: " in fumehood("show", out, "oracle/talk")
    assert fumehood_json("replay", out, "--json")["identical"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("code", [ONE_AT_A_TIME, LISTENER], ids=["run", "act"])
def test_both_kinds_of_agents_are_called_once_per_message(
    suite: Path, tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "writer.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    words = (
        "run",
        str(suite),
        "-a",
        "writer:Writer",
        "--engine",
        "process",
        "--i-trust-this-agent",
    )
    report = fumehood_json(*words, "--json", "--out", str(tmp_path / "run"))
    assert [agent["successes"] for agent in report["agents"]] == [1]
