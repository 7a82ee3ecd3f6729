"""Success against the intensity of added faults, in the report of an experiment."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.parts.commands import fumehood_json

STORM = {
    "format": "fumehood.faults/1",
    "faults": [{"family": "timeout", "trigger": {"prob": 0.9}}],
}


@pytest.mark.slow
def test_an_experiment_draws_a_curve_for_each_agent(tmp_path: Path) -> None:
    storm = tmp_path / "storm.yaml"
    storm.write_text(yaml.safe_dump(STORM), encoding="utf-8")
    described = {
        "format": "fumehood.experiment/1",
        "suites": ["sample"],
        "agents": ["policy_aware", "noop"],
        "faults": ["none", {"file": str(storm), "intensities": [0.5, 1]}],
        "tasks": {"limit": 6},
        "run": {"engine": "inline"},
    }
    file = tmp_path / "experiment.yaml"
    file.write_text(yaml.safe_dump(described), encoding="utf-8")
    out = tmp_path / "out"
    points = fumehood_json("experiment", str(file), "--out", str(out), "--json")["dose_response"]
    by_agent = {
        agent: [point for point in points if point["agent"] == agent]
        for agent in ("policy_aware", "noop")
    }
    for curve in by_agent.values():
        assert [point["intensity"] for point in curve] == [0, 0.5, 1]
    fired = [point["fired"] for point in by_agent["policy_aware"]]
    assert fired == sorted(fired)
    assert fired[0] < fired[2]
    assert {point["success"] for point in by_agent["noop"]} == {0}
    assert (out / "report" / "figures" / "dose_response.svg").is_file()
    assert "Success by intensity of faults" in (out / "report" / "report.md").read_text("utf-8")
