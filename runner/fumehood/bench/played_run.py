"""Run folders made in memory: real doors, real traces, the real judge; no service and no boxes.

For measuring what reads run folders, and for proving it on runs of any size: an episode takes a fraction of
a millisecond.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from fumehood.core.json_values import JsonObject
from fumehood.core.task import Suite
from fumehood.core.trace import Record
from fumehood.engines.engine import Exit, ExitReason
from fumehood.harness_modes.registry import PROFILES
from fumehood.orchestrator.config import RunConfig, run_config
from fumehood.orchestrator.judge import Verdict, judge
from fumehood.orchestrator.plan import PlannedEpisode, plan_episodes
from fumehood.records.frozen_suite import freeze_suite
from fumehood.records.row import EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.service.monotonic_clock import MonotonicClock
from fumehood.service.scroll import Scroll
from fumehood.testing.memory_seat import MemorySeat
from fumehood.version import __version__
from fumehood_agent.adapter import work
from fumehood_agent.loading import load_agent

WALL_MS = 60_000

Player = Callable[[MemorySeat], object]
"""Works at a seat until it is done; one that raises has crashed."""


def builtin(name: str) -> Player:
    """Return a built-in agent as a player."""
    return lambda seat: work(load_agent(f"builtin:{name}"), seat)


def play_run(
    path: Path, suite: Suite, players: Mapping[str, Player], *, trials: int = 1, seed: int = 0
) -> RunFolder:
    """Play every episode of a plan and write a run folder, as ``fumehood run`` would.

    Args:
        path: of the folder; must not exist, or be empty.
        suite: the tasks.
        players: by the label of the agent they stand for.
        trials: attempts per agent and task.
        seed: of all chance.

    Raises:
        InputError: the folder cannot be made.
    """
    config = run_config(
        {"suite": suite.name, "agents": tuple(players), "trials": trials, "seed": seed}
    )
    folder = RunFolder.create(path, _manifest(config, suite), suite)
    for planned in plan_episodes(suite, tuple(players), trials, seed):
        _write(folder, planned, *_play(planned, players[planned.agent]))
    return folder


def _play(planned: PlannedEpisode, player: Player) -> tuple[tuple[Record, ...], Verdict, int]:
    started = time.monotonic()
    profile, recorder = PROFILES.load(planned.case.task.profile)(), Scroll()
    episode = profile.open_episode(planned.to_spec(WALL_MS), recorder, MonotonicClock())
    ended = Exit(0, ExitReason.EXITED)
    try:
        player(MemorySeat(episode.seats[0], profile))
    except Exception:
        # Whatever an agent raises is the end of its process, as it would be in a box.
        ended = Exit(1, ExitReason.EXITED)
    episode.close()
    records = recorder.sealed()
    verdict = judge(planned.case, records, ended, None)
    return records, verdict, round((time.monotonic() - started) * 1000)


def _write(
    folder: RunFolder,
    planned: PlannedEpisode,
    records: Sequence[Record],
    verdict: Verdict,
    wall_ms: int,
) -> None:
    row = EpisodeRow(
        name=planned.name,
        seed=planned.seed,
        outcome=verdict.outcome,
        score=verdict.score,
        trace=folder.write_trace(planned.name, records),
        trace_digest=verdict.trace_digest,
        attempts=1,
        wall_ms=wall_ms,
        stdout_bytes=0,
        stderr_bytes=0,
        refusals=len(verdict.evidence.refusals) if verdict.evidence else 0,
    )
    folder.append_row(row)


def _manifest(config: RunConfig, suite: Suite) -> JsonObject:
    return {
        "run": os.urandom(8).hex(),
        "suite": suite.name,
        "suite_digest": sha256(freeze_suite(suite).encode("ascii")).hexdigest(),
        "tasks": len(suite.cases),
        "config": config.model_dump(mode="json"),
        "engine": "memory",
        "isolation": "none",
        "agents": [{"label": label, "kind": "player", "name": label} for label in config.agents],
        "versions": {"fumehood": __version__, "python": platform.python_version()},
    }
