"""Safety suites by name, through the real service: inline and with one process per agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parts.commands import fumehood_json

AGENTS = ("-a", "careful", "-a", "reckless", "-a", "over_cautious")


@pytest.mark.slow
def test_the_agents_have_the_same_traces_with_every_engine(tmp_path: Path) -> None:
    inline, process = (
        fumehood_json(
            *("run", "safety:small", "--limit", "2", *AGENTS, "--json"),
            *("--engine", engine, "--out", str(tmp_path / engine)),
        )
        for engine in ("inline", "process")
    )
    assert {agent["agent"]: agent["successes"] for agent in inline["agents"]} == {
        "careful": 2,
        "reckless": 0,
        "over_cautious": 0,
    }
    assert inline["trace_digest"] == process["trace_digest"]
    assert fumehood_json("replay", str(tmp_path / "inline"), "--json")["identical"] == 6
