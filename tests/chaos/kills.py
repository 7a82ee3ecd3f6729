"""Runs whose orchestrator is killed again and again, at moments drawn from a seed, until they are done."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.chaos.arena import Arena, Story, damage_of, story_of
from tests.chaos.victims import Being, Victim
from tests.parts.listening import wait_until

AGENTS = ("-a", "policy_aware", "-a", "schema_repair")
PATIENCE_S = 15.0
"""For services and boxes to notice that their orchestrator is gone."""


@dataclass(slots=True)
class Survival:
    """What came of it."""

    kills: int = 0
    runs: int = 0
    episodes: int = 0
    seconds_unkilled: float = 0.0
    """That a run takes which nobody kills."""
    kills_before_a_run_began: int = 0
    """So early that there was no run folder yet, so that the run was begun again."""

    def __str__(self) -> str:
        return (
            f"{self.kills} kills in {self.runs} runs of {self.episodes} episodes in all, "
            f"{self.kills_before_a_run_began} of them before a run had begun: every episode exactly once, "
            "all as in a run that nobody killed, nothing torn, nothing left"
        )


def survive_kills(arena: Arena, engine: str, kills: int, seed: int, tasks: int = 12) -> Survival:
    """Kill runs until ``kills`` is reached, then let the last one finish; every run is checked."""
    chance, survival = Random(f"{engine}/{seed}"), Survival()
    suite = arena.suite(f"{engine}-{seed}", tasks)
    words = (str(suite), *AGENTS, "--engine", engine, "-j", "2", "--seed", str(seed))
    quiet = arena.root / f"{engine}-quiet"
    began = time.monotonic()
    arena.finish("run", *words, "--out", str(quiet))
    # Relative, so that a slow machine is killed in the midst of its work too, and not only at the beginning.
    survival.seconds_unkilled = time.monotonic() - began
    expected = story_of(quiet)
    while survival.kills < kills:
        run = arena.root / f"{engine}-{survival.runs}"
        family = _run_to_its_end(arena, run, words, chance, survival, kills)
        _check(arena, run, expected, family)
        survival.runs += 1
        survival.episodes += len(expected)
    return survival


def _run_to_its_end(
    arena: Arena, run: Path, words: tuple[str, ...], chance: Random, survival: Survival, kills: int
) -> set[Being]:
    family: set[Being] = set()
    while True:
        begun = (run / "run.json").exists()
        command = ("resume", str(run)) if begun else ("run", *words, "--out", str(run))
        with arena.start(*command) as victim:
            moment_s = chance.uniform(0.1, 1.1) * survival.seconds_unkilled
            patience_s = moment_s if survival.kills < kills else 300
            status = _watch(victim, patience_s, family)
            if status is None:
                survival.kills += 1
                victim.kill()
                survival.kills_before_a_run_began += not (run / "run.json").exists()
                continue
            assert status == 0, victim.said()
            return family


def _watch(victim: Victim, patience_s: float, family: set[Being]) -> int | None:
    """Wait, and note whom the command started; return its status, or None when it goes on."""
    status = victim.wait(patience_s)
    family |= victim.family()
    return status


def _check(arena: Arena, run: Path, expected: Story, family: set[Being]) -> None:
    assert story_of(run) == expected
    assert damage_of(run) == []
    wait_until(lambda: not any(one.is_alive for one in family), PATIENCE_S)
    assert [one.command() for one in family if one.is_alive] == []
    assert arena.leftovers() == []
