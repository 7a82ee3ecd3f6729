"""``fumehood list`` shows what is installed, and broken plugins disturb no other command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fumehood.core.errors import InputError
from fumehood.orchestrator.config import RunConfig, run_config
from fumehood.orchestrator.monitors import monitor_specs
from tests.parts.commands import fumehood_json

ENTRIES = """
[fumehood.worlds]
hotel = hotel_worlds:Inn
crud = hotel_worlds:Inn
[fumehood.benchmarks]
lost = hotel_lost:Lost
[fumehood.report_sections]
typo = hotel_typo:section
[fumehood.exporters]
plain = hotel_worlds:plain
[fumehood.monitors]
quiet = hotel_worlds:Quiet
"""
WORLDS = '''
class Inn:
    """Beds of ``inns``. More text."""

def plain(run):
    """One text file. More text."""
    yield "plain.txt", f"{len(run.rows)} rows".encode()

class Quiet:
    """Allows everything."""
'''


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """A folder with a distribution whose plugins work or are broken."""
    info = tmp_path / "hotel-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hotel\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    (tmp_path / "hotel_worlds.py").write_text(WORLDS)
    (tmp_path / "hotel_typo.py").write_text("def section(:\n")
    return tmp_path


def _fumehood(plugins: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fumehood", *words],
        env={**os.environ, "PYTHONPATH": str(plugins)},
        capture_output=True,
        text=True,
        check=False,
    )


def _config(monitor: str) -> RunConfig:
    return run_config({"suite": "sample", "agents": ["noop"], "monitors": [monitor]})


def _listed(plugins: Path) -> dict[str, list[dict[str, str]]]:
    done = _fumehood(plugins, "list", "--json")
    assert done.returncode == 0, done.stderr
    listed: dict[str, list[dict[str, str]]] = json.loads(done.stdout)
    return {kind: [each for each in rows if each["distribution"]] for kind, rows in listed.items()}


@pytest.mark.slow
def test_a_plugin_is_listed_with_its_distribution(plugins: Path) -> None:
    listed = _listed(plugins)
    assert listed["worlds"][1] == {
        "name": "hotel",
        "about": "Beds of inns.",
        "distribution": "hotel 1.2",
        "problem": "",
    }
    assert [each["name"] for each in listed["monitors"]] == ["quiet"]


@pytest.mark.slow
def test_a_broken_plugin_is_one_line_with_its_distribution_and_the_remedy(plugins: Path) -> None:
    listed = _listed(plugins)
    (lost,), (typo,) = listed["benchmarks"], listed["report_sections"]
    assert lost["problem"] == (
        "hotel 1.2 registers the benchmark 'lost' as hotel_lost:Lost (fumehood.benchmarks), which "
        "cannot be imported (ModuleNotFoundError: No module named 'hotel_lost'): repair or "
        "uninstall it"
    )
    assert "(fumehood.report_sections), which cannot be imported (SyntaxError" in typo["problem"]
    assert listed["worlds"][0]["problem"] == (
        "hotel 1.2 installs the world 'crud', which is the name of a built-in one and has no "
        "effect: rename the entry point"
    )


@pytest.mark.slow
def test_a_broken_plugin_disturbs_only_commands_that_name_it(plugins: Path, tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    words = ("sample", "--agent", "noop", "--limit", "1", "--engine", "inline", "--out", run)
    assert _fumehood(plugins, "run", *words).returncode == 0
    report = _fumehood(plugins, "report", run)
    assert report.returncode == 0
    assert "\nfumehood: hotel 1.2 registers the report section 'typo'" in report.stderr
    out = tmp_path / "plain"
    assert _fumehood(plugins, "export", run, "--to", "plain", "--out", str(out)).returncode == 0
    assert (out / "plain.txt").read_text() == "1 rows"
    named = _fumehood(plugins, "run", "lost", "--agent", "noop")
    assert (named.returncode, named.stderr.count("\n")) == (2, 1)
    assert "hotel 1.2 registers the benchmark 'lost'" in named.stderr


def test_an_installed_monitor_is_named_like_a_class(
    plugins: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(plugins))
    (spec,) = monitor_specs(_config("quiet"))
    assert spec.name == "quiet"
    assert spec.settings == {"class": "Quiet", "arguments": {}, "module": "hotel_worlds"}
    with pytest.raises(InputError, match="'quit' is not FILE"):
        monitor_specs(_config("quit"))


@pytest.mark.slow
def test_every_built_in_extension_has_a_description() -> None:
    listed: dict[str, list[dict[str, Any]]] = fumehood_json("list", "--json")
    assert [each["name"] for kind in listed.values() for each in kind if not each["about"]] == []
    assert {"time", "world"} <= {each["name"] for each in listed["turn_policies"]}


def test_kinds_can_be_named() -> None:
    assert set(fumehood_json("list", "engines", "faults", "--json")) == {"engines", "faults"}
