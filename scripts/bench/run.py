"""A whole inline run, from the plan to the sealed folder."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from fumehood.core.task import Case
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.launch import Progress, start_run
from scripts.bench.in_memory import in_memory_per_s
from scripts.bench.measure import Figure, timed

AGENTS = ("heuristic", "schema_repair", "instruction_parser")
"""Built-in agents that never wait for a tool that asks them to."""


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
