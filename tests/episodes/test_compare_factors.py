"""`compare --by faults|budget` pairs tasks that differ in this factor only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.architecture.project import ROOT
from tests.parts.commands import fumehood, fumehood_json, run_fumehood

SAMPLE = ROOT / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"
TASKS = 12
STORM = {"format": "fumehood.faults/1", "faults": [{"family": "authz"}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("factors")
    lines = SAMPLE.read_text().splitlines(keepends=True)[:TASKS]
    (folder / "tasks.jsonl").write_text("".join(lines))
    (folder / "storm.yaml").write_text(yaml.safe_dump(STORM))
    (folder / "tight.yaml").write_text(yaml.safe_dump({"budget": {"calls": 1}}))
    return folder


def compared(folder: Path, *words: str) -> Any:
    agents = ("-a", "policy_aware", "-a", "noop", "--engine", "inline")
    return fumehood_json("compare", str(folder / "tasks.jsonl"), *words, *agents, "--json")


@pytest.mark.slow
def test_faults_change_the_tasks_and_are_still_paired(folder: Path) -> None:
    words = ("--by", "faults", "--faults", str(folder / "storm.yaml"))
    result = compared(folder, *words, "--out", str(folder / "faults"))
    (effect,) = result["effects"]
    assert (effect["factor"], effect["baseline"], effect["level"]) == ("faults", "none", "storm")
    assert (effect["pairs"], effect["tasks"]) == (2 * TASKS, TASKS)
    assert effect["difference"] < 0
    assert [line["oracle"]["graded"] for line in result["baselines"]] == [TASKS, TASKS]
    without, with_faults = result["runs"]
    again = fumehood_json("compare", without, with_faults, "--by", "faults", "--json")
    assert again["effects"] == result["effects"]
    fumehood("compare", without, with_faults, status=2)


@pytest.mark.slow
def test_a_budget_of_k_calls_measures_the_true_success_within_k_calls(folder: Path) -> None:
    words = ("--by", "budget", "--config", str(folder / "tight.yaml"), "--out")
    result = compared(folder, *words, str(folder / "budget"))
    (effect,) = result["effects"]
    assert (effect["baseline"], effect["level"]) == ("own", "calls=1")
    assert result["baseline"] == "the first"  # The bounds of the tasks have no order with 1 call.
    printed = fumehood("compare", *result["runs"], "--by", "budget")
    (header,) = (line for line in printed.splitlines() if "filtered" in line)
    assert header.split("  ")[-1].strip() == "S(1) filtered"
    assert "S(1)" in header.replace("S(1) filtered", "")


@pytest.mark.slow
def test_the_lowest_budget_is_the_baseline_and_each_agent_has_its_effect(folder: Path) -> None:
    runs = []
    for calls in (5, 1):
        config, out = folder / f"{calls}.yaml", folder / f"calls-{calls}"
        config.write_text(yaml.safe_dump({"budget": {"calls": calls}}))
        words = ("-a", "policy_aware", "-a", "noop", "--engine", "inline", "--config", str(config))
        fumehood("run", str(folder / "tasks.jsonl"), *words, "--out", str(out))
        runs.append(str(out))
    result = fumehood_json("compare", *runs, "--by", "budget", "--json")
    assert (result["against"], result["baseline"]) == ("calls=1", "the lowest level")
    own = {name: effects[0]["difference"] for name, effects in result["by_agent"].items()}
    assert own["policy_aware"] > own["noop"] == 0
    (whole,) = result["effects"]
    assert whole["difference"] == pytest.approx(sum(own.values()) / 2)
    printed = fumehood("compare", *runs, "--by", "budget", "--against", "calls=5")
    assert "Baseline: calls=5 (--against)." in " ".join(printed.split())
    assert "Effect of budget, by agent" in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--by", "faults"), "state faults of the second run"),
        (("--by", "budget"), "state budget of the second run"),
        (("--by", "model"), "name finished runs to compare by model"),
    ],
)
def test_a_comparison_without_a_second_level_is_rejected(
    folder: Path, words: tuple[str, ...], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        compared(folder, *words)


@pytest.mark.slow
def test_the_engine_of_the_environment_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("compare", str(folder / "tasks.jsonl"), "-a", "noop", "--by", "faults", "--faults")
    monkeypatch.setenv("FUMEHOOD_CONCURRENCY", "many")
    done = run_fumehood(*words, str(folder / "storm.yaml"), timeout_s=120)
    assert (done.returncode, done.stderr.partition(": ")[2][:21]) == (2, "FUMEHOOD_CONCURRENCY:")
    monkeypatch.setenv("FUMEHOOD_CONCURRENCY", "1")
    monkeypatch.setenv("FUMEHOOD_ENGINE", "inline")
    out = folder / "by-environment"
    fumehood_json(*words, str(folder / "storm.yaml"), "--limit", "1", "--out", str(out), "--json")
    manifests = [json.loads(path.read_bytes()) for path in out.rglob("run.json")]
    assert [manifest["engine"] for manifest in manifests] == ["inline", "inline"]
