"""What came of an attack is kept for exactly the set-up that was attacked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fumehood.core.json_values import JsonObject
from fumehood.engines.process import ProcessEngine
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.launch import Progress, start_run
from fumehood.records.caches import keep_probe, last_probe, probe_summary, system_name

FOUND: JsonObject = {
    "made": "2026-01-02T03:04:05+00:00",
    "fumehood": "0.1.0",
    "counts": {"stopped": 2, "not stopped": 1, "not run": 0},
    "attacks": [],
}
SILENT = Progress(lambda *_: None, lambda _: None, lambda _: None)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_the_last_one_is_kept() -> None:
    keep_probe("docker", "Docker 1 with runc", {**FOUND, "fumehood": "0.0.9"})
    keep_probe("docker", "Docker 1 with runc", FOUND)
    kept = last_probe("docker", "Docker 1 with runc")
    assert kept == {
        "format": "fumehood.probe/1",
        "engine": "docker",
        "detail": "Docker 1 with runc",
        "system": system_name(),
        **FOUND,
    }


def test_another_set_up_was_not_attacked() -> None:
    keep_probe("docker", "Docker 1 with runc", FOUND)
    assert last_probe("docker", "Docker 2 with runc") is None
    assert last_probe("podman", "Docker 1 with runc") is None


@pytest.mark.parametrize("torn", ["", "[]", '{"format": "another"}', "{"])
def test_what_cannot_be_read_is_none(torn: str) -> None:
    keep_probe("docker", "Docker", FOUND).write_text(torn, encoding="utf-8")
    assert last_probe("docker", "Docker") is None


def test_it_lies_in_the_users_state_folder(state: Path) -> None:
    assert keep_probe("docker", "Docker", FOUND).parent == state / "fumehood" / "probes"


def test_in_one_line_it_counts_what_there_was() -> None:
    assert probe_summary(FOUND) == "2 stopped, 1 not stopped (2026-01-02, fumehood 0.1.0)"
    assert probe_summary(None) == ""


def test_a_run_copies_the_last_one_of_its_own_engine(tmp_path: Path) -> None:
    keep_probe("process", ProcessEngine().check().detail, FOUND)
    config = run_config({"suite": "sample", "agents": ["noop"], "engine": "process"})
    folder = start_run(config, tmp_path / "run", SILENT)
    copied = json.loads((folder.path / "run.json").read_text(encoding="utf-8"))["containment"]
    assert copied == last_probe("process", ProcessEngine().check().detail)
    assert copied["made"] == FOUND["made"]
