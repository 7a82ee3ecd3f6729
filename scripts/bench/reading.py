"""Processor time and memory of the commands that read a run, beside those of the run itself."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fumehood.core.errors import InfraError
from scripts.bench.measure import Figure, ratio

EPISODES = 2000
"""Episodes of the run. A run of one trial shows what a command needs to start."""
REPLAY_MAX = 1.5


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command and its processes used."""

    cpu_s: float
    resident_mb: float
    """Largest resident memory of one process."""


def cost_of_reading(suite: str, tasks: int) -> Iterator[Figure]:
    """Yield what a run and the commands that read it cost.

    Args:
        suite: as ``fumehood run`` takes it.
        tasks: number of its tasks.
    """
    trials = max(2, EPISODES // tasks)
    episodes = trials * tasks
    with tempfile.TemporaryDirectory() as temporary:
        small, large = Path(temporary, "small"), Path(temporary, "large")
        _cost_of_run(suite, 1, small)
        run = _cost_of_run(suite, trials, large)
        yield Figure(
            f"inline run of {episodes:,} episodes",
            f"{1000 * run.cpu_s / episodes:.2f} s of processor per 1,000, {run.resident_mb:.0f} MB",
        )
        for command in ("verify", "score", "show", "report", "replay"):
            start, cost = cost_of(command, str(small)), cost_of(command, str(large))
            further_s = 1000 * (cost.cpu_s - start.cpu_s) / (episodes - tasks)
            detail = (
                f"{start.cpu_s:.2f} s for {tasks} episodes, {further_s:.2f} s for each further "
                f"1,000, {cost.resident_mb:.0f} MB"
            )
            what = f"{command} of this run, processor time beside that of the run"
            if command == "replay":
                yield ratio(what, cost.cpu_s, run.cpu_s, REPLAY_MAX, detail=detail)
            else:
                yield Figure(what, f"{cost.cpu_s / run.cpu_s:.2f}×  {detail}")


def _cost_of_run(suite: str, trials: int, folder: Path) -> Cost:
    options = ("-a", "schema_repair", "-n", str(trials), "--engine", "inline")
    return cost_of("run", suite, *options, "--out", str(folder))


def cost_of(*arguments: str) -> Cost:
    """Execute a command of fumehood, and return what it cost.

    Raises:
        InfraError: the command failed.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "fumehood", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise InfraError(f"fumehood {' '.join(arguments)} ended with status {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
