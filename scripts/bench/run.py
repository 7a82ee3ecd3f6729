"""Whole runs, from the plan to the sealed folder."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from fumehood.core.task import Case
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.launch import Progress, start_run
from scripts.bench.in_memory import in_memory_per_s
from scripts.bench.measure import Figure, ratio, timed

AGENTS = ("heuristic", "schema_repair", "instruction_parser")
"""Built-in agents that never wait for a tool that asks them to."""

RAY_MAX = 1.05
_ROUNDS = 3


def episodes_of_a_run(suite: str, cases: Sequence[Case], workers: int) -> Iterator[Figure]:
    """Yield the rate of a whole run, and its share of the rate in memory.

    Args:
        suite: as ``fumehood run`` takes it.
        cases: its tasks.
        workers: service processes; twice as many episodes run at once.
    """
    limit_per_s = in_memory_per_s(cases)
    settings = {"suite": suite, "agents": AGENTS, "engine": "inline"}
    config = run_config({**settings, "service_workers": workers, "concurrency": 2 * workers})
    quiet = Progress(on_start=lambda *_: None, on_row=lambda _: None, on_wait=lambda _: None)
    with tempfile.TemporaryDirectory() as folder:
        seconds = timed(lambda: start_run(config, Path(folder) / "run", quiet))
    per_s = len(cases) * len(AGENTS) / seconds
    yield Figure(
        f"episodes of a whole inline run, {workers} worker{'s' if workers > 1 else ''}",
        f"{per_s:,.0f}/s, {per_s / limit_per_s:.0%} of the rate in memory on one core",
    )


def ray_to_none(engine: str) -> Figure:
    """Return the ratio of the time of an episode on a node of Ray, the only one, to that without
    Ray, which the driver alone plays. The start of Ray does not count."""
    seconds: dict[str | None, list[float]] = {"local:1": [], None: []}
    for _ in range(_ROUNDS):
        for on, taken in seconds.items():
            taken.append(_seconds_per_episode(engine, on))
    with_ray, without = median(seconds["local:1"]), median(seconds[None])
    return ratio(
        f"episodes in boxes of {engine} on one node of Ray to those without Ray",
        with_ray,
        without,
        RAY_MAX,
        detail=f"({with_ray * 1000:.0f} to {without * 1000:.0f} ms)",
    )


def _seconds_per_episode(engine: str, on: str | None) -> float:
    """Play the sample suite, and return the mean time from its first row to its last one."""
    settings = {"suite": "sample", "agents": ["schema_repair"], "engine": engine, "concurrency": 2}
    config = run_config(settings if on is None else {**settings, "on": on})
    ended_s = list[float]()
    progress = Progress(
        on_start=lambda *_: None,
        on_row=lambda _: ended_s.append(time.monotonic()),
        on_wait=lambda _: None,
    )
    with tempfile.TemporaryDirectory() as folder:
        start_run(config, Path(folder) / "run", progress)
    return (ended_s[-1] - ended_s[0]) / (len(ended_s) - 1)
