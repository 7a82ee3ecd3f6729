"""`run --prepare` starts the boxes of the next episodes, and changes no result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fumehood.records.run_reader import open_run
from fumehood.records.trust import Trust
from tests.parts.commands import fumehood, fumehood_json, run_fumehood
from tests.parts.listening import wait_until

ENGINES = [
    pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.image]),
    pytest.param("oci", marks=[pytest.mark.oci, pytest.mark.image]),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
]
PATIENCE_S = 120.0
HANGS = "import time; Agent = type('Agent', (), {'run': lambda self, session: time.sleep(600)})"


def _options(engine: str) -> list[str]:
    forked = ["--no-forked-starts"] if engine == "bubblewrap" else []
    return ["--engine", engine, *forked, "--limit", "5", "-j", "1"]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_with_prepared_boxes_has_the_digest_of_one_without(
    engine: str, tmp_path: Path
) -> None:
    def play(prepare: int) -> tuple[dict[str, Any], dict[str, Any]]:
        out = tmp_path / str(prepare)
        words = ["sample", "-a", "policy_aware", *_options(engine), "--prepare", str(prepare)]
        report = fumehood_json("run", *words, "--out", str(out), "--json")
        return report, json.loads((out / "run.json").read_text())

    (plain, plain_facts), (prepared, prepared_facts) = play(0), play(2)
    assert (plain["infra"], prepared["infra"]) == (0, 0)
    assert prepared["trace_digest"] == plain["trace_digest"]
    assert "prepared" not in plain_facts["isolation_facts"]
    assert prepared_facts["isolation_facts"]["prepared"] == 2
    prepared_run = open_run(tmp_path / "2", Trust.of_user())
    assert prepared_run.isolation() == f"{plain_facts['isolation']} (prepared)"


def _agents(module: str) -> int:
    """Return how many processes of boxes execute an agent of a module."""
    number = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            program, *words = (process / "cmdline").read_bytes().decode().split("\0")
            is_python = Path(program).name.startswith("python")
            number += is_python and "fumehood_agent" in words and f"{module}:Agent" in words
    return number


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_signal_ends_boxes_that_wait_and_then_the_box_that_plays(
    engine: str, tmp_path: Path
) -> None:
    module = f"hangs_{os.urandom(4).hex()}"
    (tmp_path / f"{module}.py").write_text(HANGS)
    words = ["sample", "-a", f"{module}:Agent", *_options(engine), "--prepare", "2"]
    # A shell may have started the tests with SIGINT ignored, which a new process inherits.
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    command = [sys.executable, "-m", "fumehood", "run", *words, "--out", "run"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        signal.signal(signal.SIGINT, earlier)
        try:
            assert wait_until(lambda: _agents(module) == 3, PATIENCE_S)
            run.send_signal(signal.SIGINT)
            assert wait_until(lambda: _agents(module) == 1, PATIENCE_S)
            run.send_signal(signal.SIGTERM)
            _, said = run.communicate(timeout=PATIENCE_S)
        finally:
            run.kill()
    assert "stopping: 1 episode is finished first" in said
    assert run.returncode == 128 + signal.SIGINT
    assert _agents(module) == 0
    assert not (tmp_path / "run" / "episodes.jsonl").exists()
    played = json.loads((tmp_path / "run" / "run.json").read_text())["run"]
    assert played not in fumehood("clean", "--dry-run")


WORKSPACES = f"harbor:{Path(__file__).parents[2] / 'examples' / 'workspaces'}"


@pytest.mark.parametrize(
    ("suite", "options", "reason"),
    [
        ("sample", "--engine inline", "the engine inline starts no boxes in advance"),
        ("sample", "--engine process", "the engine process starts no boxes in advance"),
        ("sample", "--on local:1", "nodes start no boxes in advance"),
        (WORKSPACES, "--engine docker", "all tasks have workspaces"),
    ],
)
def test_prepare_is_refused_where_it_has_no_effect(
    suite: str, options: str, reason: str, tmp_path: Path
) -> None:
    out = ("--prepare", "2", "--out", str(tmp_path / "run"))
    done = run_fumehood("run", suite, "-a", "noop", *options.split(), *out)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert reason in line
    assert "use --prepare 0" in line or "or --prepare 0" in line
