"""Runs with monitors: the same on every engine, stated in the run folder, and resumable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.parts.commands import fumehood, fumehood_json

pytestmark = pytest.mark.slow

RULES = """
rules:
  - {name: removals, tool: "delete_*", action: refuse, suspicion: 0.9}
"""
GATE = """
from fumehood.monitors.monitor import ALLOWED, Action, Decision

class Gate:
    def __init__(self, word): self.word = word
    def begin(self, facts): self.calls = 0
    def before(self, step):
        self.calls += 1
        if self.word in step.tool: return Decision(action=Action.REFUSE, suspicion=0.5)
        return Decision(suspicion=0.01 * self.calls)
    def after(self, step): return ALLOWED
"""


@pytest.fixture
def monitors(tmp_path: Path) -> Path:
    """A configuration with a rule file that escalates nothing, and a class."""
    (tmp_path / "rules.yaml").write_text(RULES, encoding="utf-8")
    (tmp_path / "gate.py").write_text(GATE, encoding="utf-8")
    config = {
        "tasks": {"names": ["files_release_version", "files_sign_at_the_gate"]},
        "monitors": [
            {"monitor": f"{tmp_path}/gate.py:Gate", "name": "gate", "arguments": {"word": "write"}}
        ],
    }
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def _run(config: Path, out: Path, engine: str, *words: str) -> str:
    """Return the trace digest of a run."""
    agent = ("--agent", "policy_aware", "--engine", engine, "--config", str(config))
    result = fumehood_json("run", "sample", *agent, "--out", str(out), *words, "--json")
    assert result["infra"] == 0
    digest: str = result["trace_digest"]
    return digest


@pytest.mark.slow
def test_monitors_decide_alike_on_every_engine(monitors: Path, tmp_path: Path) -> None:
    digests = {_run(monitors, tmp_path / engine, engine) for engine in ("inline", "process")}
    assert len(digests) == 1
    manifest = json.loads((tmp_path / "inline" / "run.json").read_text(encoding="utf-8"))
    assert [(each["name"], each["kind"]) for each in manifest["monitors"]] == [("gate", "python")]
    shown = fumehood("show", str(tmp_path / "inline"), "files_release_version")
    assert "refused_by_monitor" in shown
    assert "monitor gate before tool 1: " in shown
    assert "identical, 0 different" in fumehood("replay", str(tmp_path / "process"))


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_monitors_decide_about_agents_in_boxes(monitors: Path, tmp_path: Path) -> None:
    assert _run(monitors, tmp_path / "inline", "inline") == _run(
        monitors, tmp_path / "boxes", "bubblewrap"
    )


def test_a_flag_replaces_the_monitors_of_the_file(monitors: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    _run(monitors, tmp_path / "run", "inline", "--monitor", str(rules))
    assert "monitors: rules (rules)" in fumehood("score", str(tmp_path / "run"))


@pytest.mark.parametrize(
    "text", ["rules.txt", "gate.py:Missing", "gate.py", "model:m1", "absent.yaml", "person"]
)
def test_a_monitor_that_cannot_work_stops_the_run(
    monitors: Path, tmp_path: Path, text: str
) -> None:
    name = text if ":" not in text or text.startswith("model") else f"{tmp_path}/{text}"
    words = ("--agent", "policy_aware", "--engine", "inline", "--out", str(tmp_path / "run"))
    fumehood("run", "sample", *words, "--monitor", name, status=2)
