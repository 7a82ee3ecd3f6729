"""A long run in which parts of the machinery are broken again and again, for about one episode in ten."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.chaos.arena import Arena, Story, attempted_again, damage_of, infra_rows_of, story_of
from tests.chaos.saboteur import kill_box, kill_service
from tests.chaos.victims import Victim
from tests.parts.listening import wait_until

TASKS = 40
EPISODES_PER_DEED = 10
PATIENCE_S = 15.0


@dataclass(slots=True)
class Endurance:
    """What came of it."""

    engine: str
    episodes: int
    seconds: float = 0.0
    broken: Counter[str] = field(default_factory=Counter)
    """How often each part was broken."""
    resumed: int = 0
    tried_again: int = 0
    infra_rows: int = 0
    """Episodes that failed on our side each time, and were made good by resuming."""
    lost: int = 0
    changed: int = 0
    """Episodes that went otherwise than in a run in which nothing broke."""
    damage: int = 0
    leftovers: int = 0

    def __str__(self) -> str:
        deeds = ", ".join(f"{name} {count}" for name, count in sorted(self.broken.items()))
        return (
            f"{self.engine}: {self.episodes} episodes in {self.seconds:.0f} s, "
            f"broken {self.broken.total()} times ({deeds}), {self.tried_again} episodes tried again, "
            f"{self.infra_rows} rows of failures of ours, resumed {self.resumed} times: "
            f"{self.lost} lost, 0 done twice, {self.changed} changed, 0 failures of ours scored, "
            f"{self.damage} damaged files, {self.leftovers} left over"
        )


def endure(arena: Arena, engine: str, episodes: int, seed: int) -> Endurance:
    """Run ``episodes`` while parts of the machinery break, resume until all are done, and compare.

    Args:
        arena: where.
        engine: makes the boxes.
        episodes: a multiple of ``TASKS``.
        seed: of what is broken, and after how many episodes.
    """
    suite, trials = arena.suite("long", TASKS), episodes // TASKS
    words = ("run", str(suite), "-a", "policy_aware", "-j", "2", "--trials", str(trials))
    quiet, noisy = arena.root / "quiet", arena.root / "noisy"
    # Every engine tells the same story, and this one tells it fastest.
    arena.finish(*words, "--engine", "process", "--out", str(quiet))
    expected, endurance, chance = story_of(quiet), Endurance(engine, episodes), Random(seed)
    began = time.monotonic()
    command: tuple[str, ...] = (*words, "--engine", engine, "--out", str(noisy))
    while True:
        with arena.start(*command) as victim:
            _break_parts(victim, noisy, chance, endurance)
            assert victim.status in (0, 3), victim.said()
        if len(story_of(noisy)) == len(expected):
            break
        endurance.resumed += 1
        command = ("resume", str(noisy))
    endurance.seconds = time.monotonic() - began
    _judge(arena, endurance, expected, noisy)
    return endurance


def _break_parts(victim: Victim, run: Path, chance: Random, endurance: Endurance) -> None:
    """Break something whenever about ten more episodes are done, until the command ends."""
    due = _rows(run) + _draw(chance)
    while victim.wait(0.05) is None:
        if _rows(run) >= due:
            deed = chance.choice((kill_service, kill_box))
            if deed(victim, chance):
                endurance.broken[deed.__name__] += 1
                due += _draw(chance)


def _draw(chance: Random) -> int:
    return chance.randint(1, 2 * EPISODES_PER_DEED - 1)


def _rows(run: Path) -> int:
    rows = run / "episodes.jsonl"
    return rows.read_bytes().count(b"\n") if rows.exists() else 0


def _judge(arena: Arena, endurance: Endurance, expected: Story, noisy: Path) -> None:
    told = story_of(noisy)
    endurance.lost = len(expected.keys() - told.keys())
    endurance.changed = sum(told[name] != expected[name] for name in expected.keys() & told.keys())
    endurance.infra_rows = len(infra_rows_of(noisy))
    endurance.tried_again = attempted_again(noisy)
    endurance.damage = len(damage_of(noisy))
    wait_until(lambda: arena.leftovers() == [], PATIENCE_S)
    endurance.leftovers = len(arena.leftovers())
