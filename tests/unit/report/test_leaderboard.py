"""`leaderboard` on real runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fumehood.benchmarks.registry import load_suite
from fumehood.cli.leaderboard import leaderboard
from fumehood.core.errors import InputError
from fumehood.orchestrator.added_faults import with_faults
from tests.parts.commands import fumehood
from tests.parts.cut_short import cut_short
from tests.parts.memory_runs import builtin, play_run
from tests.unit.report.runs import part_of_sample, played


def _board(*arguments: object) -> str:
    done = CliRunner().invoke(
        leaderboard, [str(argument) for argument in arguments], catch_exceptions=False
    )
    assert done.exit_code == 0
    return done.stdout


def _lines(*arguments: object) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = json.loads(_board(*arguments, "--json"))
    return lines


@pytest.mark.slow
def test_agents_are_ranked_with_intervals_and_baselines(tmp_path: Path) -> None:
    one = played(tmp_path / "one", "noop", "policy_aware", tasks=10)
    other = played(tmp_path / "other", "instruction_parser", tasks=10)
    lines = _lines(one.path, other.path)
    rates = [line["success_rate"] for line in lines]
    assert rates == sorted(rates, reverse=True)
    assert [line["agent"] for line in lines][-1] == "noop"
    assert {(line["noop"], line["oracle"]) for line in lines} == {(0.0, 1.0)}
    assert all(line["interval"][0] <= line["success_rate"] <= line["interval"][1] for line in lines)
    assert len({line["suite_digest"] for line in lines}) == 1
    shown = _board(one.path, other.path)
    assert shown.index("policy_aware") < shown.index("noop")
    assert "+0.0 pp" in shown


def test_the_no_op_score_is_that_of_the_noop_agent(tmp_path: Path) -> None:
    (line,) = _lines(played(tmp_path / "run", "noop", tasks=20).path)
    assert line["success_rate"] == line["noop"]


@pytest.mark.slow
def test_suites_of_one_name_with_other_faults_are_ranked_apart(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("format: fumehood.faults/1\nfaults: [{family: timeout}]\n", encoding="utf-8")
    alone = played(tmp_path / "alone", "policy_aware", tasks=5)
    faulted = with_faults(part_of_sample(5), str(plan))
    hard = play_run(tmp_path / "faulted", faulted, {"policy_aware": builtin("policy_aware")})
    lines = _lines(alone.path, hard.path)
    assert len({line["suite_digest"] for line in lines}) == 2
    assert all(
        f"sample ({line['suite_digest'][:8]})" in _board(alone.path, hard.path) for line in lines
    )


@pytest.mark.slow
def test_tables_state_that_different_judges_decided(tmp_path: Path) -> None:
    asked = {"op": "judged", "asks": "Is the answer polite?"}
    task = {
        **{"format": "fumehood.task/1", "task_id": "polite", "world": "files", "solvable": True},
        **{"instruction": "Greet.", "initial_state": {}, "criteria": [asked]},
        **{"budget": {"steps": 2, "calls": 2, "retries": 1}, "oracle": [{"submit": "Hello."}]},
    }
    suite = tmp_path / "polite.json"
    suite.write_text(json.dumps(task))
    runs = []
    for answer in ("yes", "no"):
        config = tmp_path / f"{answer}.yaml"
        config.write_text(f"judge: rules\njudging: {{rules: [{{answer: '{answer}'}}]}}\n")
        runs.append(str(tmp_path / answer))
        words = ("run", str(suite), "-a", "noop", "--config", str(config), "--engine", "inline")
        fumehood(*words, "--out", runs[-1])
    assert "Judges with different names or settings (rules)" in _board(*runs)
    assert "Judges with other names" not in _board(runs[0])
    assert [line["judge"] for line in _lines(*runs)] == ["rules", "rules"]
    assert "Judges with different names or settings" in fumehood("compare", *runs)


def test_a_run_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    run = played(tmp_path / "run", "noop", tasks=3)
    assert len(_lines(run.path, run.path)) == 1


def test_a_run_without_an_episode_has_no_headline(tmp_path: Path) -> None:
    run = played(tmp_path / "run", "noop", "policy_aware", tasks=3)
    cut_short(run.path, 0)
    lines = _lines(run.path)
    assert [(line["headline"], line["success_rate"]) for line in lines] == [(False, None)] * 2
    assert "–" in _board(run.path)


@pytest.mark.slow
def test_an_interrupted_run_is_not_ranked_by_its_finished_episodes(tmp_path: Path) -> None:
    whole = played(tmp_path / "whole", "policy_aware", tasks=10)
    cut = played(tmp_path / "cut", "policy_aware", tasks=10)
    cut_short(cut.path, 8)
    first, last = _lines(cut.path, whole.path)
    assert (first["run"], first["headline"]) == (str(whole.path), True)
    assert (last["run"], last["headline"], last["planned"]) == (str(cut.path), False, 10)
    assert "8 of 8, 2 not finished" in _board(cut.path, whole.path)
    assert _board(cut.path).count("100.0%") == 1, "only that of the oracle"
    cut_short(whole.path, 9)
    (line,) = _lines(whole.path)
    assert line["headline"] is True, "the same share as for episodes without a score"


def test_a_folder_that_is_not_a_run_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        _board(tmp_path)


def test_suite_info_runs_the_no_op_and_the_oracle() -> None:
    from fumehood.cli.suite import suite

    done = CliRunner().invoke(suite, ["info", "sample", "--json"], catch_exceptions=False)
    info = json.loads(done.stdout)
    tasks = len(load_suite("sample").cases)
    assert info["noop"] == {"solved": 0, "graded": tasks, "ungraded": 0, "success_rate": 0.0}
    assert info["oracle"]["solved"] == tasks
    assert info["licence"]
    assert info["criterion"]
    assert info["scored_on"]


@pytest.mark.slow
def test_a_team_and_one_agent_are_ranked_on_the_same_suite(tmp_path: Path) -> None:
    for name, more in (("alone", {}), ("team", {"team": {"workers": 2}})):
        config = tmp_path / f"{name}.json"
        config.write_text(json.dumps({"engine": "inline", "tasks": {"limit": 2}, **more}))
        words = ("-a", "policy_aware", "--config", str(config), "--out", str(tmp_path / name))
        fumehood("run", "sample", *words)
    lines = _lines(tmp_path / "alone", tmp_path / "team")
    assert {line["team"] for line in lines} == {"none", "workers=2"}
    assert len({line["suite_digest"] for line in lines}) == 1
    assert "policy_aware (workers=2)" in _board(tmp_path / "alone", tmp_path / "team")
