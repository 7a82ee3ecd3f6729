"""Baselines and probe results are kept for exactly the suite, code and engine they belong to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.cli import baselines
from fumehood.core.json_values import JsonObject
from fumehood.core.task import Suite
from fumehood.engines.process import ProcessEngine
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.launch import Progress, start_run
from fumehood.records.caches import (
    keep_baseline,
    keep_probe,
    kept_baseline,
    last_probe,
    probe_summary,
    system_name,
)

CASES = load_suite("sample").cases
PROBE: JsonObject = {
    "made": "2026-01-02T03:04:05+00:00",
    "fumehood": "0.1.0",
    "counts": {"stopped": 2, "not stopped": 1, "not run": 0},
    "attacks": [],
}
SILENT = Progress(lambda *_: None, lambda _: None, lambda _: None)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder of the test, which does not exist yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "deep" / "state"))
    return tmp_path / "deep" / "state" / "fumehood"


def test_a_baseline_is_kept_for_one_suite() -> None:
    suite = Suite("sample", CASES[:3])
    keep_baseline("noop", suite, {"solved": 0})
    keep_baseline("noop", suite, {"solved": 1})
    assert kept_baseline("noop", suite) == {"format": "fumehood.baseline/1", "solved": 1}
    assert kept_baseline("oracle", suite) is None
    assert kept_baseline("noop", Suite("sample", CASES[:4])) is None


@pytest.mark.parametrize("content", ["[]", '"fumehood.baseline/1"', '{"format": "other"}', "torn"])
def test_another_file_is_not_a_baseline(state: Path, content: str) -> None:
    suite = Suite("sample", CASES[:3])
    keep_baseline("noop", suite, {"solved": 0})
    (file,) = (state / "baselines").iterdir()
    file.write_text(content)
    assert kept_baseline("noop", suite) is None


def test_a_slow_baseline_is_not_played_again(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "LONG_S", 0.0)
    suite = Suite("sample", CASES[:3])
    assert baselines.noop_of(suite).solved == 0
    (file,) = (state / "baselines").iterdir()
    kept = json.loads(file.read_text())
    first = CASES[0].task.task_id
    file.write_text(json.dumps({**kept, first: True}))
    assert baselines.noop_of(suite).solved == 1
    del kept[first]
    file.write_text(json.dumps(kept))
    assert baselines.noop_of(suite).graded == 3
    file.write_text("torn")
    assert baselines.noop_of(suite).solved == 0


def test_a_quick_baseline_is_not_kept(state: Path) -> None:
    assert baselines.oracle_of(Suite("sample", CASES[:3])).solved == 3
    assert not state.exists()


def test_the_last_probe_of_an_engine_is_kept() -> None:
    keep_probe("docker", "Docker 1 with runc", {**PROBE, "fumehood": "0.0.9"})
    keep_probe("docker", "Docker 1 with runc", PROBE)
    assert last_probe("docker", "Docker 1 with runc") == {
        "format": "fumehood.probe/1",
        "engine": "docker",
        "detail": "Docker 1 with runc",
        "system": system_name(),
        **PROBE,
    }


def test_another_version_of_an_engine_has_no_probe() -> None:
    keep_probe("docker", "Docker 1 with runc", PROBE)
    assert last_probe("docker", "Docker 2 with runc") is None
    assert last_probe("podman", "Docker 1 with runc") is None


@pytest.mark.parametrize("content", ["", "[]", '{"format": "another"}', "{"])
def test_an_unreadable_probe_counts_as_none(content: str) -> None:
    keep_probe("docker", "Docker", PROBE).write_text(content, encoding="utf-8")
    assert last_probe("docker", "Docker") is None


def test_probes_are_kept_in_the_state_folder(state: Path) -> None:
    assert keep_probe("docker", "Docker", PROBE).parent == state / "probes"


def test_a_probe_summary_counts_results() -> None:
    assert probe_summary(PROBE) == "2 stopped, 1 not stopped (2026-01-02, fumehood 0.1.0)"
    assert probe_summary(None) == ""


@pytest.mark.slow
def test_a_run_copies_the_last_probe_of_its_engine(tmp_path: Path) -> None:
    keep_probe("process", ProcessEngine().check().detail, PROBE)
    config = run_config({"suite": "sample", "agents": ["noop"], "engine": "process"})
    folder = start_run(config, tmp_path / "run", SILENT)
    copied = json.loads((folder.path / "run.json").read_text(encoding="utf-8"))["containment"]
    assert copied == last_probe("process", ProcessEngine().check().detail)
    assert copied["made"] == PROBE["made"]
