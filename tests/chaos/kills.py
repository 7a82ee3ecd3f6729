"""Runs whose orchestrator is killed repeatedly, at seeded random times, until they are done."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.chaos.commands import Process, RunningCommand
from tests.chaos.workspace import Results, Workspace, damage_of, results_of
from tests.parts.listening import wait_until

AGENTS = ("-a", "policy_aware", "-a", "schema_repair")
PATIENCE_S = 15.0
"""How long services and boxes may take to notice that their orchestrator is gone."""


@dataclass(slots=True)
class KillResult:
    """The result of runs with kills."""

    kills: int = 0
    runs: int = 0
    episodes: int = 0
    seconds_unkilled: float = 0.0
    """Duration of a run without kills."""
    kills_before_a_run_began: int = 0
    """Kills before there was a run folder, after which the run was started again."""

    def __str__(self) -> str:
        return (
            f"{self.kills} kills in {self.runs} runs of {self.episodes} episodes in all, "
            f"{self.kills_before_a_run_began} of them before a run had begun: "
            "every episode exactly once, "
            "all as in a run without kills, nothing torn, nothing left"
        )


def run_with_kills(
    space: Workspace, engine: str, kills: int, seed: int, tasks: int = 12
) -> KillResult:
    """Kill runs until ``kills`` is reached, then let the last one finish; every run is checked."""
    random, result = Random(f"{engine}/{seed}"), KillResult()
    suite = space.suite(f"{engine}-{seed}", tasks)
    words = (str(suite), *AGENTS, "--engine", engine, "-j", "2", "--seed", str(seed))
    quiet = space.root / f"{engine}-quiet"
    began = time.monotonic()
    space.finish("run", *words, "--out", str(quiet))
    # Relative to the duration, so that a slow machine is interrupted in the middle of its work too.
    result.seconds_unkilled = time.monotonic() - began
    expected = results_of(quiet)
    while result.kills < kills:
        run = space.root / f"{engine}-{result.runs}"
        descendants = _run_to_its_end(space, run, words, random, result, kills)
        _check(space, run, expected, descendants)
        result.runs += 1
        result.episodes += len(expected)
    return result


def _run_to_its_end(
    space: Workspace,
    run: Path,
    words: tuple[str, ...],
    random: Random,
    result: KillResult,
    kills: int,
) -> set[Process]:
    descendants: set[Process] = set()
    while True:
        begun = (run / "run.json").exists()
        arguments = ("resume", str(run)) if begun else ("run", *words, "--out", str(run))
        with space.start(*arguments) as command:
            moment_s = random.uniform(0.1, 1.1) * result.seconds_unkilled
            patience_s = moment_s if result.kills < kills else 300
            status = _watch(command, patience_s, descendants)
            if status is None:
                result.kills += 1
                command.kill()
                result.kills_before_a_run_began += not (run / "run.json").exists()
                continue
            assert status == 0, command.output()
            return descendants


def _watch(command: RunningCommand, patience_s: float, descendants: set[Process]) -> int | None:
    """Wait, and collect the processes of the command; return its status, None while it runs."""
    status = command.wait(patience_s)
    descendants |= command.descendants()
    return status


def _check(space: Workspace, run: Path, expected: Results, descendants: set[Process]) -> None:
    assert results_of(run) == expected
    assert damage_of(run) == []
    wait_until(lambda: not any(process.is_alive for process in descendants), PATIENCE_S)
    assert [process.command() for process in descendants if process.is_alive] == []
    assert space.orphans() == []
