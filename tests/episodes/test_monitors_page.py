"""Runs the commands of the page about monitors, in order, in a copy of the examples."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.project import ROOT
from tests.episodes.test_agent_pages import expected_output, script

PAGE = ROOT / "docs" / "monitors.md"


def _lines(text: str) -> list[str]:
    """Return the lines with single spaces, because the width of columns depends on all rows."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_the_page_shows_the_output_of_its_commands(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script(text)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "XDG_DATA_HOME": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = _lines(done.stdout)
    missing = [line for line in _lines("\n".join(expected_output(text))) if line not in printed]
    assert missing == [], done.stdout
