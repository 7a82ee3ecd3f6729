"""Runs in the root of ``scripts/setup-originals inspect``: plays samples when asked for them.

A sample has a sandbox, from the image of Fumehood's agents, and a solver that makes three calls in
it, without a model.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.solver import solver
from inspect_ai.util import sandbox
from inspect_ai.util._sandbox.docker import prereqs

CALL = ["/sbin/docker-init", "--version"]
"""The fastest program of a container with an init program; the image has no shell and no tools."""
COMPOSE = """
services:
  default:
    image: fumehood/agent-python:latest
    x-local: true
    command: ["python3", "-c", "import signal; signal.pause()"]
    init: true
    network_mode: none
    stop_grace_period: 1s
"""


@solver
def three_calls() -> Any:
    """Make three calls in the sandbox."""

    async def solve(state: Any, _: Any) -> Any:
        for _call in range(3):
            done = await sandbox().exec(CALL)
            assert done.success, done.stderr
        return state

    return solve


async def _any_docker() -> None:
    """Accept every version of the daemon: what a sample uses also works with Debian 12's."""


def _play(count: int, at_once: int) -> float:
    """Return the samples per second, from the first start of a sandbox to the last result.

    The time that Inspect takes before and after is left out.
    """
    task = Task(
        dataset=[Sample(input="work") for _ in range(count)],
        solver=three_calls(),
        sandbox=("docker", "compose.yaml"),
    )
    [log] = eval(
        task,
        model="mockllm/model",
        display="none",
        log_dir="logs",
        max_samples=at_once,
        max_sandboxes=at_once,
    )
    samples = log.samples or []
    assert log.status == "success", log.error
    assert len(samples) == count
    started = min(sample.events[0].timestamp for sample in samples)
    ended = max(datetime.fromisoformat(str(sample.completed_at)) for sample in samples)
    return count / (ended - started).total_seconds()


def main() -> None:
    """Print the samples per second for each line with a number of samples and a concurrency."""
    prereqs.validate_docker_engine = _any_docker
    Path("compose.yaml").write_text(COMPOSE, "utf-8")
    for line in sys.stdin:
        print(json.dumps(_play(*map(int, line.split()))), flush=True)


if __name__ == "__main__":
    main()
