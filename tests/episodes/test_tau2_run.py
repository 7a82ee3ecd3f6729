"""τ²-bench through the real service: agent and user each have their own process."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.parts.benchmark_data import benchmark_data
from tests.parts.commands import fumehood, fumehood_json
from tests.parts.installed import installed

pytestmark = pytest.mark.slow

installed("inspect_evals")

HELPFUL = """
class Agent:
    def run(self, session):
        words = session.task.instruction.rpartition("</policy>")[2]
        if "Important Meeting" in words:
            session.call("create_task", {"user_id": "user_1", "title": "Important Meeting"})
        while not session.ended:
            session.submit("It is done.")
"""


def test_the_oracle_and_the_no_op_have_the_expected_scores(tmp_path: Path) -> None:
    words = ("run", "tau2:mock", "-a", "oracle", "-a", "noop", "--engine", "inline", "--json")
    summary = fumehood_json(*words, "--out", str(tmp_path / "run"))
    assert {agent["agent"]: agent["successes"] for agent in summary["agents"]} == {
        "oracle": 8,
        "noop": 1,
    }
    assert summary["noop"]["solved"] == 1
    assert fumehood_json("score", str(tmp_path / "run"), "--json")["agents"] == summary["agents"]
    assert fumehood_json("replay", str(tmp_path / "run"), "--json")["identical"] == 18
    about = fumehood_json("suite", "info", "tau2:mock", "--json")
    assert (about["noop"]["solved"], about["oracle"]["solved"]) == (1, 8)


def test_an_agent_helps_a_scripted_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helpful.py").write_text(HELPFUL)
    words = (
        "run",
        "tau2:mock",
        "-a",
        "helpful:Agent",
        "--engine",
        "process",
        "--i-trust-this-agent",
    )
    fumehood(*words, "--out", str(tmp_path / "run"))
    rows = [
        json.loads(line) for line in (tmp_path / "run" / "episodes.jsonl").read_text().splitlines()
    ]
    solved = {row["task"] for row in rows if row["success"]}
    assert solved == {"create_task_1", "create_task_1_with_env_assertions", "create_task_1_nl_eval"}
    (trace,) = (tmp_path / "run" / "traces").glob("*/create_task_1.0.jsonl")
    events = [json.loads(line)["event"] for line in trace.read_text().splitlines()]
    received = [
        event["text"]
        for event in events
        if event["kind"] == "turn_began" and event["seat"] == "user"
    ]
    assert received == ["Hi! How can I help you today?", *["It is done."] * 4]


@pytest.mark.slow
def test_a_run_uses_its_judge_for_assertions_in_natural_language(tmp_path: Path) -> None:
    folder = tmp_path / "retail"
    folder.mkdir()
    published = Path(benchmark_data("tau2/retail"))
    tasks = json.loads((published / "tasks.json").read_text())
    asserting = [task for task in tasks if task["evaluation_criteria"]["nl_assertions"]][:3]
    (folder / "tasks.json").write_text(json.dumps(asserting))
    (folder / "policy.md").write_text("Be kind.")
    config = tmp_path / "judged.yaml"
    config.write_text(
        yaml.safe_dump({"judging": {"rules": [{"criterion": "*:opinion", "answer": "yes"}]}})
    )
    words = ("run", f"tau2:retail:{folder}", "-a", "oracle", "--engine", "inline", "--json")
    verdicts = []
    for judged in ((), ("--judge", "rules", "--config", str(config))):
        out = tmp_path / f"run{len(judged)}"
        fumehood_json(*words, *judged, "--out", str(out))
        rows = [json.loads(line) for line in (out / "episodes.jsonl").read_text().splitlines()]
        verdicts.append(Counter(row["success"] for row in rows))
        assert all(row["checks"]["check_1:database"] for row in rows)
    assert verdicts == [{None: 3}, {True: 3}]
