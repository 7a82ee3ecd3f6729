"""What was recorded is seen again when the calls are made inside a box."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden import golden_file, golden_sample

ENGINES = [
    pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.image]),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
]


def _replay(files: list[Path], engine: str, every: int) -> dict[str, object]:
    command = [
        sys.executable,
        "-m",
        "fumehood",
        "vectors",
        *map(str, files),
        "--via",
        "box",
        "--json",
    ]
    options = ["--engine", engine, "--every", str(every), "--concurrency", "4"]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    report: dict[str, object] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize("engine", ENGINES)
def test_built_in_agents_make_the_recorded_calls_from_inside_a_box(engine: str) -> None:
    report = _replay([golden_sample("toolmisusebench/agents.sample.jsonl")], engine, 1)
    assert report["differences"] == []
    assert report["passed"] == 24


@pytest.mark.bubblewrap
def test_all_recorded_agents_make_their_calls_from_inside_a_box() -> None:
    report = _replay([golden_file("toolmisusebench/agents.jsonl")], "bubblewrap", 1)
    assert report["differences"] == []
    assert report["passed"] == 200


@pytest.mark.parametrize("engine", ENGINES)
def test_scripted_and_failing_inputs_fare_in_a_box_as_recorded(engine: str) -> None:
    files = [golden_file(f"toolmisusebench/{name}.jsonl") for name in ("scripted", "crash_cases")]
    report = _replay(files, engine, 40)
    assert report["differences"] == []
    assert report["passed"] == 39 + 2
