"""`scripts/run-tests` runs failed tests again, and reports those that pass alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.project import ROOT

pytestmark = pytest.mark.slow

FAILS_ONCE = """
from pathlib import Path

def test_that_fails_beside_others():
    ran = Path("ran")
    was_run = ran.exists()
    ran.touch()
    assert was_run
"""
FAILS_ALWAYS = "def test_that_fails(): assert False"
FAILS_OFTEN = """
import pytest

@pytest.mark.parametrize("number", range(11))
def test_that_fails(number): assert False
"""


def run_tests(folder: Path, tests: str) -> tuple[int, str]:
    """Return status and output of the script for a project with these tests."""
    (folder / ".venv" / "bin").mkdir(parents=True)
    python = folder / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (folder / "test_part.py").write_text(tests)
    # One process of pytest in place of four, because each takes a second to start.
    command = [str(ROOT / "scripts" / "run-tests"), "--numprocesses", "1"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout


def test_a_test_that_passes_alone_is_listed(tmp_path: Path) -> None:
    status, output = run_tests(tmp_path, FAILS_ONCE)
    assert status == 0, output
    assert output.endswith("run-tests:   test_part.py::test_that_fails_beside_others\n")


@pytest.mark.parametrize(("tests", "repeats"), [(FAILS_ALWAYS, 1), (FAILS_OFTEN, 0)])
def test_a_test_that_fails_twice_and_many_failures_fail_the_run(
    tmp_path: Path, tests: str, repeats: int
) -> None:
    status, output = run_tests(tmp_path, tests)
    assert status == 1, output
    assert output.count("run-tests:") == repeats
