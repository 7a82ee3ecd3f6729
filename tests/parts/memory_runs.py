"""Run folders made in memory, with real traces and the real judge, without services and boxes."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from fumehood.core.json_values import JsonObject
from fumehood.core.task import Suite
from fumehood.core.trace import Record
from fumehood.engines.engine import Exit, ExitReason
from fumehood.orchestrator.config import RunConfig, run_config
from fumehood.orchestrator.instructions import AS_IN_TASKS, Instructions
from fumehood.orchestrator.plan import PlannedEpisode, plan_episodes
from fumehood.orchestrator.scoring import PlayedAttempt, ScoredAttempt, score_attempt
from fumehood.records.frozen_suite import freeze_suite
from fumehood.records.row import EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.records.run_reader import RunReader, open_run
from fumehood.records.seals import Signing
from fumehood.records.signing_key import user_key
from fumehood.records.trust import Trust
from fumehood.service.inline import Worker, play_in_process
from fumehood.service.open_episode import MonotonicClock
from fumehood.service.seat_endpoint import SeatLimits
from fumehood.version import __version__
from fumehood_agent.adapter import work
from fumehood_agent.loading import load_agent

WALL_MS = 60_000


def builtin(name: str) -> Worker:
    """Return a built-in agent as a player."""
    return lambda seat: work(load_agent(f"builtin:{name}"), seat)


def play_run(
    path: Path,
    suite: Suite,
    players: Mapping[str, Worker],
    *,
    trials: int = 1,
    seed: int = 0,
    instructions: Instructions = AS_IN_TASKS,
) -> RunReader:
    """Play every episode of a plan and write a signed run folder, as ``fumehood run`` would.

    Args:
        path: of the folder; must not exist, or be empty.
        suite: the tasks.
        players: by agent label.
        trials: attempts per agent and task.
        seed: of every random choice.
        instructions: how they differ from those of the tasks.

    Raises:
        InputError: the folder cannot be made.
    """
    config = run_config(
        {
            "suite": suite.name,
            "agents": tuple(players),
            "trials": trials,
            "seed": seed,
            **asdict(instructions),
        }
    )
    labels = tuple(players)
    planned = tuple(plan_episodes(suite, labels, trials, seed, instructions=instructions))
    signing = Signing(user_key(), tuple(episode.name for episode in planned))
    folder = RunFolder.create(path, _manifest(config, suite), suite, signing)
    for episode in planned:
        _write(folder, episode, *_play(episode, players[episode.agent]))
    folder.seal()
    return open_run(path, Trust.of_user())


def _play(planned: PlannedEpisode, player: Worker) -> tuple[tuple[Record, ...], ScoredAttempt, int]:
    started = time.monotonic()
    spec = planned.to_spec(WALL_MS)
    played = play_in_process(spec, {spec.seats[0].name: player}, MonotonicClock(), SeatLimits())
    ended = Exit(played.exit_status, ExitReason.EXITED)
    scored = score_attempt(PlayedAttempt(planned.case, played.records, ended))
    return played.records, scored, round((time.monotonic() - started) * 1000)


def _write(
    folder: RunFolder,
    planned: PlannedEpisode,
    records: Sequence[Record],
    scored: ScoredAttempt,
    wall_ms: int,
) -> None:
    row = EpisodeRow(
        name=planned.name,
        seed=planned.seed,
        outcome=scored.outcome,
        score=scored.score,
        trace=folder.write_trace(planned.name, records),
        trace_digest=scored.trace_digest,
        attempts=1,
        wall_ms=wall_ms,
        stdout_bytes=0,
        stderr_bytes=0,
        refusals=scored.refusals,
    )
    folder.append_rows([row])


def _manifest(config: RunConfig, suite: Suite) -> JsonObject:
    return {
        "run": os.urandom(8).hex(),
        "suite": suite.name,
        "suite_digest": sha256(freeze_suite(suite).encode("ascii")).hexdigest(),
        "tasks": len(suite.cases),
        "config": config.model_dump(mode="json"),
        "engine": "memory",
        "isolation": "none",
        "agents": [
            {"label": label, "kind": "player", "name": label} for label in map(str, config.agents)
        ],
        "versions": {"fumehood": __version__, "python": platform.python_version()},
    }
