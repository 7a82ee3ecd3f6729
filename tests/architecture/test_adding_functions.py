"""The examples of docs/adding that are functions do what their pages state."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.architecture.project import ROOT
from tests.unit.report.runs import findings_of, played

pytestmark = pytest.mark.slow


def _example(page: str) -> Any:
    """Return the object of the page's example that its registry line names."""
    text = (ROOT / "docs" / "adding" / f"{page}.md").read_text(encoding="utf-8")
    (path,) = re.findall(r"\*\*Line\*\* in `[^`]+`:\s+`\"\w+\": \"([\w.:]+)\",`", text)
    return getattr(import_module(f"docs.adding.examples.{page}"), path.partition(":")[2])


def test_the_section_counts_outcomes(tmp_path: Path) -> None:
    section = _example("report_table")(findings_of(played(tmp_path / "run", "noop", tasks=3)))
    assert section.data[0].rows == [("noop", "finished", 3)]
    assert section.tables[0].rows == [("noop", "finished", "3")]


def test_the_command_counts_outcomes(tmp_path: Path) -> None:
    run = played(tmp_path / "run", "noop", tasks=3)
    done = CliRunner().invoke(_example("command"), [str(run.path), "--json"])
    assert json.loads(done.stdout) == {"finished": 3}
    assert "finished" in CliRunner().invoke(_example("command"), [str(run.path)]).stdout
