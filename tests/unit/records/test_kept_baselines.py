"""Baselines that took long are kept, for one suite and one state of the code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.cli import baselines
from fumehood.core.task import Suite
from fumehood.records.caches import keep_baseline, kept_baseline

CASES = load_suite("sample").cases


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of this test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "fumehood" / "baselines"


def test_what_is_kept_is_found_for_the_same_suite_alone() -> None:
    suite = Suite("sample", CASES[:3])
    keep_baseline("noop", suite, {"solved": 1})
    assert kept_baseline("noop", suite) == {"format": "fumehood.baseline/1", "solved": 1}
    assert kept_baseline("oracle", suite) is None
    assert kept_baseline("noop", Suite("sample", CASES[:4])) is None


def test_what_took_long_is_not_played_again(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "LONG_S", 0.0)
    suite = Suite("sample", CASES[:3])
    assert baselines.noop_of(suite).solved == 0
    (file,) = state.iterdir()
    file.write_text(json.dumps({**json.loads(file.read_text()), "solved": 2}))
    assert baselines.noop_of(suite).solved == 2
    file.write_text("torn")
    assert baselines.noop_of(suite).solved == 0


def test_what_was_quick_leaves_nothing_behind(state: Path) -> None:
    assert baselines.oracle_of(Suite("sample", CASES[:3])).solved == 3
    assert not state.exists()
