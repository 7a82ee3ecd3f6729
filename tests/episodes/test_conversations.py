"""Runs in which several seats talk: a scripted user, other agents as users, and peers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from click.testing import CliRunner

from fumehood.cli.run import run
from fumehood.cli.suite import validate
from fumehood.core.errors import InputError
from tests.parts.commands import fumehood, fumehood_json

BUDGET = {"steps": 9, "calls": 9, "retries": 2}

HELPED: dict[str, Any] = {
    "format": "fumehood.task/1",
    "task_id": "helped",
    "world": "files",
    "instruction": "Do what the user asks for.",
    "tools": ["write_file"],
    "seats": [
        {
            "name": "user",
            "instruction": "You want the word one in /a.txt. Check that it is there.",
            "budget": BUDGET,
            "tools": ["read_file"],
            "counterpart": "script",
            "script": [
                {"submit": "Write the word one into /a.txt."},
                {"tool_name": "read_file", "args": {"path": "/a.txt"}},
                {"submit": "I see it. ENOUGH"},
            ],
        }
    ],
    "conversation": {
        "rule": "dialogue",
        "settings": {
            "first": "user",
            "opening": "Hello!",
            "stop": {"user": ["ENOUGH"]},
            "turns_max": 8,
        },
    },
    "initial_state": {"files": {}},
    "budget": BUDGET,
    "criteria": [{"op": "map_value_equals", "path": "files", "key": "/a.txt", "value": "one"}],
    "solvable": True,
    "oracle": [
        {"seat": "user", "submit": "Please."},
        {"tool_name": "write_file", "args": {"path": "/a.txt", "content": "one"}},
        {"submit": "It is written."},
        {"seat": "user", "tool_name": "read_file", "args": {"path": "/a.txt"}},
        {"seat": "user", "submit": "ENOUGH"},
    ],
}

LISTENER = """
import sys

class Writer:
    def run(self, session):
        words = session.task.instruction.split()
        print("received", session.task.instruction, file=sys.stderr)
        if "Write" in words:
            session.call("write_file", {"path": "/a.txt", "content": "one"})
            session.submit("It is written.")
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_suite(tmp_path, HELPED)


def write_suite(folder: Path, record: dict[str, Any]) -> Path:
    """Write one record to a file and return its path."""
    path = folder / "talk.jsonl"
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, where tests write agents."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    return tmp_path


def test_the_oracle_is_proven(suite: Path) -> None:
    summary = fumehood_json("suite", "validate", str(suite), "--json")
    assert (summary["tasks"], summary["oracles_proven"]) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine", ["process", pytest.param("bubblewrap", marks=pytest.mark.bubblewrap)]
)
def test_the_oracle_plays_all_seats_and_a_replay_is_identical(
    suite: Path, tmp_path: Path, engine: str
) -> None:
    out = str(tmp_path / "run")
    words = (
        "run",
        str(suite),
        "-a",
        "oracle",
        "-a",
        "noop",
        "--engine",
        engine,
        "--json",
        "--out",
        out,
    )
    successes = {agent["agent"]: agent["successes"] for agent in fumehood_json(*words)["agents"]}
    assert successes == {"oracle": 1, "noop": 0}
    shown = fumehood("show", out, "oracle/helped")
    assert "user" in shown
    assert "It is written." in shown
    assert fumehood_json("replay", out, "--json")["identical"] == 2


def test_the_answer_is_the_last_text_of_the_agent_if_the_user_ends_the_conversation(
    tmp_path: Path,
) -> None:
    wants = {"op": "answer_equals", "value": "It is written."}
    said = write_suite(tmp_path, {**HELPED, "criteria": [*HELPED["criteria"], wants]})
    assert "1 solved by the oracle" in fumehood("suite", "validate", str(said))
    (tmp_path / "other").mkdir()
    wants = {**wants, "value": "No."}
    other = write_suite(tmp_path / "other", {**HELPED, "criteria": [*HELPED["criteria"], wants]})
    with pytest.raises(InputError, match="its oracle does not solve it: check_1:answer_equals"):
        CliRunner().invoke(validate, [str(other)], catch_exceptions=False)


@pytest.mark.slow
def test_an_agent_and_a_scripted_user_answer_each_other(suite: Path, agents: Path) -> None:
    (agents / "writer.py").write_text(LISTENER, encoding="utf-8")
    words = (
        "run",
        str(suite),
        "-a",
        "writer:Writer",
        "--engine",
        "process",
        "--i-trust-this-agent",
    )
    summary = fumehood_json(*words, "--json", "--out", str(agents / "run"))
    # The call of the user is not one of the agent.
    assert [(agent["successes"], agent["tool_calls"]) for agent in summary["agents"]] == [(1, 1.0)]
    fumehood("export", str(agents / "run"), "--to", "inspect", "--out", str(agents / "log"))
    (log,) = (agents / "log").glob("*.eval")
    (read_back,) = fumehood_json("score", "--from", str(log), "--json")["agents"]
    assert read_back["tool_calls"] == 1.0
    with ZipFile(log) as archive:
        (name,) = (each for each in archive.namelist() if each.startswith("samples/"))
        exported = json.loads(archive.read(name))
    # The user ended the conversation.
    assert exported["output"]["completion"] == "It is written."


@pytest.mark.slow
def test_another_agent_can_be_the_user(suite: Path, agents: Path) -> None:
    (agents / "writer.py").write_text(LISTENER, encoding="utf-8")
    (agents / "rude.py").write_text(
        "class User:\n    def run(self, session):\n        session.submit('ENOUGH')\n",
        encoding="utf-8",
    )
    words = (
        "run",
        str(suite),
        "-a",
        "writer:Writer",
        "--seat",
        "user=rude:User",
        "--engine",
        "process",
    )
    summary = fumehood_json(*words, "--i-trust-this-agent", "--json", "--out", str(agents / "run"))
    assert [agent["successes"] for agent in summary["agents"]] == [0]


@pytest.mark.slow
def test_a_user_that_crashes_is_an_infrastructure_failure(suite: Path, agents: Path) -> None:
    (agents / "gone.py").write_text(
        "class User:\n    def run(self, session):\n        raise SystemExit(7)\n", encoding="utf-8"
    )
    words = ("run", str(suite), "-a", "noop", "--seat", "user=gone:User", "--engine", "process")
    out = agents / "run"
    fumehood(*words, "--i-trust-this-agent", "--out", str(out), status=3)
    (row,) = [json.loads(line) for line in (out / "episodes.jsonl").read_text().splitlines()]
    assert (row["end"]["outcome"], row["end"]["kind"]) == ("infra", "counterpart")
    assert "seat user" in row["end"]["detail"]


@pytest.mark.slow
def test_an_agent_that_crashes_is_reported_although_other_seats_wait(
    suite: Path, agents: Path
) -> None:
    (agents / "gone.py").write_text(
        "class Agent:\n    def run(self, session):\n        raise SystemExit(7)\n", encoding="utf-8"
    )
    words = ("run", str(suite), "-a", "gone:Agent", "--engine", "process", "--i-trust-this-agent")
    summary = fumehood_json(*words, "--json", "--out", str(agents / "run"), status=2)
    assert [agent["outcomes"] for agent in summary["agents"]] == [{"agent_crashed": 1}]


PEER = """
class Peer:
    def run(self, session):
        text = session.task.instruction
        number = text.count("\\n\\n") + session.task.turn
        session.call("write_file", {"path": f"/{number}.txt", "content": text})
        session.submit(f"word {number}")
"""


@pytest.mark.slow
def test_one_agent_plays_all_peers_in_turn(agents: Path) -> None:
    (agents / "peer.py").write_text(PEER, encoding="utf-8")
    record = {
        key: value for key, value in HELPED.items() if key not in ("tools", "oracle", "seats")
    }
    seats = [
        {"name": name, "instruction": "Say a word.", "budget": BUDGET}
        for name in ("second", "third")
    ]
    talk = {"rule": "round", "settings": {"rounds": 2, "opening": "Begin."}}
    oracle = [{"submit": ""}]
    criteria = [{"op": "exists", "path": "files"}]
    suite = write_suite(
        agents,
        {**record, "seats": seats, "conversation": talk, "oracle": oracle, "criteria": criteria},
    )
    digests = set()
    for number in range(2):
        out = agents / f"run{number}"
        words = (
            "run",
            str(suite),
            "-a",
            "peer:Peer",
            "--engine",
            "process",
            "--i-trust-this-agent",
        )
        fumehood(*words, "--out", str(out))
        (row,) = [json.loads(line) for line in (out / "episodes.jsonl").read_text().splitlines()]
        digests.add(row["trace_digest"])
    assert len(digests) == 1


def test_an_unknown_seat_is_named(suite: Path, tmp_path: Path) -> None:
    words = (str(suite), "-a", "noop", "--seat", "teacher=noop", "--out", str(tmp_path / "run"))
    result = CliRunner().invoke(run, words, standalone_mode=False)
    assert "no seat 'teacher'" in str(result.exception)
