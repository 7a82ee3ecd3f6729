"""One command at a time writes a run folder, from its first file on, and signs nothing that was changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fumehood.records.run_folder import RunFolder
from fumehood.records.verify import verify
from tests.architecture.project import ROOT
from tests.parts.commands import fumehood
from tests.parts.cut_short import cut_short

SAMPLE = ROOT / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(SAMPLE.read_text().splitlines(keepends=True)[:2]))
    return path


def words(tasks: Path, out: Path) -> list[str]:
    return ["run", str(tasks), "-a", "policy_aware", "--engine", "inline", "--out", str(out)]


def started(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fumehood", *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def test_of_two_commands_with_one_folder_one_runs_and_the_other_says_why_not(
    tasks: Path, tmp_path: Path
) -> None:
    both = [started(*words(tasks, tmp_path / "run")) for _ in range(2)]
    said = [each.communicate(timeout=120)[1] for each in both]
    assert sorted(each.returncode for each in both) == [0, 2], said
    loser = next(text for each, text in zip(both, said, strict=True) if each.returncode == 2)
    assert "another command is writing" in loser or "is not empty" in loser
    assert verify(tmp_path / "run").damage == ()


def test_a_run_that_was_edited_is_not_sealed_anew_by_resuming_it(
    tasks: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    fumehood(*words(tasks, run))
    fumehood("resume", str(run))
    assert verify(run).damage == ()
    seal = (run / "seal.json").read_bytes()
    rows = run / "episodes.jsonl"
    whole = rows.read_text()
    rows.write_text(whole.replace('"attempts":1', '"attempts":2', 1))
    with started("resume", str(run)) as resumed:
        assert resumed.stderr is not None
        (line,) = resumed.stderr.read().splitlines()
    assert resumed.returncode == 2
    assert line.endswith(f"see: fumehood verify {run}")
    assert (run / "seal.json").read_bytes() == seal


def test_what_is_run_again_for_a_lost_trace_is_said(tasks: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    fumehood(*words(tasks, run))
    lost = RunFolder.open(run).rows()[0]
    cut_short(run, 1)
    (run / lost.trace).write_bytes(b"")
    with started("resume", str(run)) as resumed:
        assert resumed.stderr is not None
        said = resumed.stderr.read()
    assert resumed.returncode == 0
    assert any("running again" in line and "torn or missing" in line for line in said.splitlines())
    assert verify(run).damage == ()
