"""Runs on Ray have the digest of one machine, also if nodes, actors and machines are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.project import ROOT
from tests.parts.commands import fumehood_json
from tests.parts.ray_machines import NEEDS_RAY, RayMachines

SAMPLE = ROOT / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"
TASKS = 12
MACHINES = 3
WAITING = """
import time

from fumehood_agent.builtin.policy_aware import PolicyAware


class Waiting(PolicyAware):
    def act(self, observation):
        time.sleep(1)
        return super().act(observation)
"""
TRUSTED = ("--engine", "process", "--i-trust-this-agent", "--wall-time-s", "300")
TIMEOUT_S = 600

pytestmark = [pytest.mark.slow, NEEDS_RAY]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with tasks, and an agent that waits before each action."""
    made = tmp_path_factory.mktemp("many")
    lines = SAMPLE.read_text().splitlines(keepends=True)
    (made / "tasks.jsonl").write_text("".join(lines[:TASKS]))
    (made / "waiting.py").write_text(WAITING)
    return made


@pytest.fixture(scope="module")
def machines() -> Iterator[RayMachines]:
    with RayMachines(MACHINES) as started:
        yield started


class Command:
    """A run of the waiting agent as a process."""

    def __init__(self, folder: Path, out: str, *words: str, **variables: str) -> None:
        self._out = folder / out
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "fumehood", "run", "tasks.jsonl", "-a", "waiting:Waiting"),
                *(*TRUSTED, "--json", "--out", out, *words),
            ],
            cwd=folder,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def rows(self) -> list[dict[str, Any]]:
        path = self._out / "episodes.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def wait_for_rows(self, number: int) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while len(self.rows()) < number:
            assert time.monotonic() < deadline
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.05)

    def result(self) -> Any:
        output, errors = self.process.communicate(timeout=TIMEOUT_S)
        assert self.process.returncode == 0, errors
        assert fumehood_json("verify", str(self._out), "--json")["sound"]
        return json.loads(output)


@pytest.fixture(scope="module")
def digest(folder: Path) -> str:
    """Return the trace digest of the run on one machine."""
    return str(Command(folder, "one", "-j", "6").result()["trace_digest"])


def test_four_shards_and_three_nodes_play_what_one_machine_plays(
    folder: Path, machines: RayMachines, digest: str
) -> None:
    on_nodes = Command(folder, "nodes", "-j", "2", "--on", machines.on, **machines.variables)
    assert on_nodes.result()["trace_digest"] == digest
    manifest = json.loads((folder / "nodes" / "run.json").read_text())
    assert len(manifest["nodes"]) == MACHINES
    assert {row["attempts"] for row in on_nodes.rows()} == {1}
    shards = [f"shard{number}" for number in range(1, 5)]
    for number, name in enumerate(shards, start=1):
        Command(folder, name, "-j", "6", "--shard", f"{number}/4").result()
    paths = [str(folder / name) for name in shards]
    merged = fumehood_json("merge", str(folder / "all"), *paths, "--json")
    assert merged["trace_digest"] == digest


def _node(machines: RayMachines) -> None:
    os.kill(machines.node(0), signal.SIGKILL)


def _daemon(machines: RayMachines) -> None:
    os.kill(machines.raylet(1), signal.SIGKILL)


def _machine(machines: RayMachines) -> None:
    machines.kill_machine(2)


@pytest.mark.parametrize(
    ("kill", "number"),
    [
        (_node, 0),
        pytest.param(_daemon, 1, marks=pytest.mark.release),
        pytest.param(_machine, 2, marks=pytest.mark.release),
    ],
)
def test_the_episodes_of_a_killed_node_are_played_again(
    kill: Callable[[RayMachines], None],
    number: int,
    folder: Path,
    machines: RayMachines,
    digest: str,
) -> None:
    run = Command(folder, f"killed{number}", "-j", "2", "--on", machines.on, **machines.variables)
    run.wait_for_rows(1)
    kill(machines)
    assert run.result()["trace_digest"] == digest
    assert len(run.rows()) == TASKS
    assert max(row["attempts"] for row in run.rows()) == 2
    machines.restart(number)


@pytest.mark.release
def test_a_cluster_without_tokens_is_refused_unless_it_is_trusted(folder: Path) -> None:
    with RayMachines(1, has_token=False) as machines:
        words = ("--on", machines.on)
        refused = Command(folder, "refused", *words, **machines.variables)
        output, errors = refused.process.communicate(timeout=TIMEOUT_S)
        assert (refused.process.returncode, output) == (2, "")
        assert "has no token authentication" in errors
        assert not (folder / "refused").exists()
        trusting = (*words, "--i-trust-this-cluster", "--limit", "2")
        trusted = Command(folder, "trusted", *trusting, **machines.variables)
        trusted.result()


@pytest.mark.release
def test_an_experiment_plays_on_nodes_of_this_machine(folder: Path) -> None:
    (folder / "two.yaml").write_text(
        f"format: fumehood.experiment/1\nsuites: [{folder / 'tasks.jsonl'}]\nseed: 3\n"
        "agents: [policy_aware]\nprompts: [0, 2]\ntrials: 2\nrun: {engine: inline}\n"
    )
    words = ("experiment", str(folder / "two.yaml"), "--json", "--out")
    here = fumehood_json(*words, str(folder / "here"))
    there = fumehood_json(*words, str(folder / "there"), "--on", "local:2")
    assert here["conditions"] == there["conditions"]
    assert len(there["verification"]) == 2
