"""One command at a time writes a run folder, and a changed folder is not signed again."""

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

pytestmark = pytest.mark.slow

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


def test_a_second_command_on_the_same_folder_fails_with_a_reason(
    tasks: Path, tmp_path: Path
) -> None:
    both = [started(*words(tasks, tmp_path / "run")) for _ in range(2)]
    errors = [process.communicate(timeout=120)[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], errors
    loser = next(
        text for process, text in zip(both, errors, strict=True) if process.returncode == 2
    )
    assert "another command is writing" in loser or "is not empty" in loser
    assert verify(tmp_path / "run").damage == ()


def test_resuming_does_not_seal_an_edited_run(tasks: Path, tmp_path: Path) -> None:
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


def test_an_episode_with_a_lost_trace_is_run_again_with_a_warning(
    tasks: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    fumehood(*words(tasks, run))
    lost = RunFolder.open(run).rows()[0]
    cut_short(run, 1)
    (run / lost.trace).write_bytes(b"")
    with started("resume", str(run)) as resumed:
        assert resumed.stderr is not None
        errors = resumed.stderr.read()
    assert resumed.returncode == 0
    assert any(
        "running again" in line and "torn or missing" in line for line in errors.splitlines()
    )
    assert verify(run).damage == ()
