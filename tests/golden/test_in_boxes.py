"""Recorded episodes replay equal when the calls are made inside a box."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden import golden_file, golden_sample

pytestmark = pytest.mark.slow

ENGINES = [
    pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.image]),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
]


def _last_line(files: list[Path], engine: str, every: int) -> str:
    options = ["--via", "box", "--engine", engine, "--every", str(every)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden", *map(str, files), *options],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        # The end of a service can be reported by gRPC as an informational message.
        env={**os.environ, "GRPC_VERBOSITY": "NONE"},
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("engine", ENGINES)
def test_built_in_agents_make_the_recorded_calls_inside_a_box(engine: str) -> None:
    files = [golden_sample("toolmisusebench/agents.sample.jsonl")]
    assert _last_line(files, engine, 1) == "24 passed, 0 failed"


@pytest.mark.bubblewrap
def test_all_recorded_agents_make_their_calls_inside_a_box() -> None:
    files = [golden_file("toolmisusebench/agents.jsonl")]
    assert _last_line(files, "bubblewrap", 1) == "200 passed, 0 failed"


@pytest.mark.parametrize("engine", ENGINES)
def test_scripted_and_failing_inputs_replay_equal_in_a_box(engine: str) -> None:
    files = [golden_file(f"toolmisusebench/{name}.jsonl") for name in ("scripted", "crash_cases")]
    assert _last_line(files, engine, 40) == f"{39 + 2} passed, 0 failed"
