"""Runs with a judged criterion: replies are kept, and scores can be repeated offline."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply
from tests.architecture.project import ROOT
from tests.parts.commands import fumehood, fumehood_json, run_fumehood

TASKS = ROOT / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"
CRITERIA = [{"op": "judged", "asks": "Does the answer say that something is closed?"}]

Says = Callable[[int, str], ScriptedReply]
"""Maps the number of the request, from 0, and the number of the fences to a reply."""


def number_of(asked: AskedOfModel) -> str:
    match = re.search(r"<<<([0-9a-f]{32}) ", asked.request["messages"][1]["content"])
    assert match is not None
    return match[1]


class Judged:
    """One run of the oracle on one task, with a judge."""

    def __init__(
        self,
        folder: Path,
        says: Says | None,
        *words: str,
        script: Callable[[AskedOfModel], ScriptedReply] | None = None,
        **judging: Any,
    ) -> None:
        self.path = folder / "run"
        record = json.loads(TASKS.read_text().splitlines()[0]) | {"criteria": CRITERIA}
        (folder / "task.jsonl").write_text(json.dumps(record) + "\n")
        self.asked: list[AskedOfModel] = []

        def counted(asked: AskedOfModel) -> ScriptedReply:
            assert says is not None
            self.asked.append(asked)
            return says(len(self.asked) - 1, number_of(asked))

        with ScriptedModels(script or counted) as models:
            provider = {"name": "scripted", "address": models.address, "models": ["j*"]}
            config = {"models": {"providers": [provider]}, "judging": judging}
            (folder / "run.yaml").write_text(yaml.safe_dump(config))
            play = ("run", str(folder / "task.jsonl"), "-a", "oracle", "--engine", "inline")
            config_words = ("--config", str(folder / "run.yaml"), "--out", str(self.path))
            self.report = fumehood_json(*play, *config_words, "--json", *words)

    @property
    def row(self) -> Any:
        (line,) = (self.path / "episodes.jsonl").read_text().splitlines()
        return json.loads(line)


@pytest.fixture
def judged(tmp_path: Path) -> Callable[..., Judged]:
    return lambda says, *words, **judging: Judged(tmp_path, says, *words, **judging)


def one_doubts(time: int, number: str) -> ScriptedReply:
    return ScriptedReply(text=f"Hm.\n[{number}] {'no' if time == 1 else 'yes'}", usage=(100, 10))


@pytest.mark.slow
def test_the_majority_of_three_votes_decides_and_its_cost_is_separate(
    judged: Callable[..., Judged],
) -> None:
    price = {"input_usd_per_mtok": 1, "output_usd_per_mtok": 2}
    run = judged(one_doubts, "--judge", "j1", price=price)
    row = run.row
    assert row["success"] is True
    assert row["checks"]["check_0:judged"] is True
    wanted = {
        "calls": 3,
        "tokens": 330,
        "microusd": 360,
        "agreement": 1 / 3,
        "undecided": 0,
        "questions": 1,
    }
    assert {name: row["metrics"][f"judge_{name}"] for name in wanted} == wanted
    assert len({number_of(asked) for asked in run.asked}) == 3, "each vote has its own fence"
    assert "model_call" not in (run.path / row["trace"]).read_text(), "the agent is not charged"


@pytest.mark.slow
def test_a_rescore_without_the_provider_gives_the_same_result(
    judged: Callable[..., Judged],
) -> None:
    run = judged(one_doubts, "--judge", "j1")
    # The provider has stopped.
    assert fumehood_json("score", str(run.path), "--json")["agents"] == run.report["agents"]
    assert fumehood_json("verify", str(run.path), "--json")["sound"] is True
    (exchanges,) = (run.path / "judge" / "episodes").iterdir()
    exchanges.write_text("")
    fumehood("score", str(run.path), status=2)
    again = fumehood_json("score", str(run.path), "--unverified", "--json")
    assert again["agents"][0]["ungraded"] == 1, "without kept replies the episode is ungraded"
    assert fumehood_json("verify", str(run.path), "--json", status=1)["sound"] is False


@pytest.mark.slow
def test_score_asks_no_provider_that_only_the_run_folder_names(
    judged: Callable[..., Judged],
) -> None:
    run = judged(one_doubts, "--judge", "j1")
    asked = len(run.asked)
    fumehood("score", str(run.path), "--judge", "j1", status=2)
    assert len(run.asked) == asked


@pytest.mark.slow
def test_unreadable_replies_leave_the_episode_ungraded(judged: Callable[..., Judged]) -> None:
    run = judged(
        lambda time, number: ScriptedReply(text="yes, it surely is\n[0123] yes"), "--judge", "j1"
    )
    row = run.row
    assert row["success"] is None
    assert "check_0:judged" not in row["checks"]
    assert row["metrics"]["judge_failed_votes"] == 3
    assert run.report["agents"][0]["graded"] == 0
    again = fumehood_json("score", str(run.path), "--json")
    assert again["agents"] == run.report["agents"]


@pytest.mark.slow
def test_a_text_that_the_provider_of_the_judge_refuses_is_a_failure(tmp_path: Path) -> None:
    def filters(asked: AskedOfModel) -> ScriptedReply:
        user = asked.request["messages"][1]["content"]
        if "is closed\n<<<" in user:
            return ScriptedReply(status=400)
        return ScriptedReply(text=f"Hm.\n[{number_of(asked)}] no", usage=(100, 10))

    run = Judged(tmp_path, None, "--judge", "j1", script=filters)
    row = run.row
    assert (row["success"], row["checks"]["scorable"]) == (False, False)
    assert row["metrics"]["not_scored"] == "judge"
    again = fumehood_json("score", str(run.path), "--json")
    assert again["agents"] == run.report["agents"], "the control question is kept, too"


@pytest.mark.slow
def test_without_a_judge_the_episode_is_ungraded_and_no_model_is_called(
    judged: Callable[..., Judged],
) -> None:
    run = judged(None)
    assert run.row["success"] is None
    assert run.asked == []
    assert not (run.path / "judge").exists()
    done = run_fumehood("score", str(run.path))
    assert "1 ungraded" in done.stderr
    assert "need a --judge" in done.stderr


@pytest.mark.slow
def test_another_judge_scores_again_and_keeps_the_run_unchanged(
    judged: Callable[..., Judged], tmp_path: Path
) -> None:
    run = judged(None)
    before = sorted(path.name for path in run.path.rglob("*"))
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        yaml.safe_dump({"judging": {"rules": [{"contains": "is closed", "answer": "yes"}]}})
    )
    words = ("score", str(run.path), "--json", "--judge", "rules", "--config", str(rules))
    assert fumehood_json(*words)["agents"][0]["successes"] == 1
    assert sorted(path.name for path in run.path.rglob("*")) == before
    fumehood("score", str(run.path), "--judge", "unknown-model", status=2)


@pytest.mark.slow
def test_rules_need_no_model(judged: Callable[..., Judged]) -> None:
    run = judged(None, "--judge", "rules", rules=[{"contains": "is closed", "answer": "yes"}])
    assert run.row["success"] is True
    assert run.row["metrics"]["judge_agreement"] is None
    assert fumehood_json("score", str(run.path), "--json")["agents"] == run.report["agents"]


def test_an_unknown_judge_is_an_input_error_before_the_run(tmp_path: Path) -> None:
    words = (
        "run",
        str(TASKS),
        "-a",
        "oracle",
        "--out",
        str(tmp_path / "run"),
        "--judge",
        "unknown-model",
    )
    fumehood(*words, status=2)
    assert not (tmp_path / "run").exists()
