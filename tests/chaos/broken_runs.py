"""A long run in which services and boxes are killed, for about one episode in ten."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.chaos.breakages import kill_box, kill_service
from tests.chaos.commands import RunningCommand
from tests.chaos.workspace import (
    Results,
    Workspace,
    attempted_again,
    damage_of,
    infra_rows_of,
    results_of,
)
from tests.parts.listening import wait_until

TASKS = 40
EPISODES_PER_BREAKAGE = 10
PATIENCE_S = 15.0


@dataclass(slots=True)
class BreakageResult:
    """The result of a run with breakages."""

    engine: str
    episodes: int
    seconds: float = 0.0
    broken: Counter[str] = field(default_factory=Counter)
    """How often each part was broken."""
    resumed: int = 0
    tried_again: int = 0
    infra_rows: int = 0
    """Rows of infrastructure failures, which resuming replaced."""
    lost: int = 0
    changed: int = 0
    """Episodes whose result differs from a run without breakages."""
    damage: int = 0
    orphans: int = 0

    def __str__(self) -> str:
        breakages = ", ".join(f"{name} {count}" for name, count in sorted(self.broken.items()))
        return (
            f"{self.engine}: {self.episodes} episodes in {self.seconds:.0f} s, "
            f"broken {self.broken.total()} times ({breakages}), "
            f"{self.tried_again} episodes attempted again, "
            f"{self.infra_rows} rows of infrastructure failures, resumed {self.resumed} times: "
            f"{self.lost} lost, 0 done twice, {self.changed} changed, "
            "0 infrastructure failures scored, "
            f"{self.damage} damaged files, {self.orphans} orphans"
        )


def run_with_breakages(space: Workspace, engine: str, episodes: int, seed: int) -> BreakageResult:
    """Run ``episodes`` while services and boxes are killed, resume until all are done, and compare.

    Args:
        space: workspace of the run.
        engine: makes the boxes.
        episodes: a multiple of ``TASKS``.
        seed: chooses what is broken, and after how many episodes.
    """
    suite, trials = space.suite("long", TASKS), episodes // TASKS
    words = ("run", str(suite), "-a", "policy_aware", "-j", "2", "--trials", str(trials))
    quiet, noisy = space.root / "quiet", space.root / "noisy"
    # Results are the same on every engine, and this one is the fastest.
    space.finish(*words, "--engine", "inline", "--out", str(quiet))
    expected, result, random = results_of(quiet), BreakageResult(engine, episodes), Random(seed)
    began = time.monotonic()
    arguments: tuple[str, ...] = (*words, "--engine", engine, "--out", str(noisy))
    while True:
        with space.start(*arguments) as command:
            _break_parts(command, noisy, random, result)
            assert command.status in (0, 3), command.output()
        if len(results_of(noisy)) == len(expected):
            break
        result.resumed += 1
        arguments = ("resume", str(noisy))
    result.seconds = time.monotonic() - began
    _compare(space, result, expected, noisy)
    return result


def _break_parts(
    command: RunningCommand, run: Path, random: Random, result: BreakageResult
) -> None:
    """Break something after about each ten episodes, until the command ends."""
    due = _rows(run) + _draw(random)
    while command.wait(0.05) is None:
        if _rows(run) >= due:
            breakage = random.choice((kill_service, kill_box))
            if breakage(command, random):
                result.broken[breakage.__name__] += 1
                due += _draw(random)


def _draw(random: Random) -> int:
    return random.randint(1, 2 * EPISODES_PER_BREAKAGE - 1)


def _rows(run: Path) -> int:
    rows = run / "episodes.jsonl"
    return rows.read_bytes().count(b"\n") if rows.exists() else 0


def _compare(space: Workspace, result: BreakageResult, expected: Results, noisy: Path) -> None:
    actual = results_of(noisy)
    result.lost = len(expected.keys() - actual.keys())
    result.changed = sum(actual[name] != expected[name] for name in expected.keys() & actual.keys())
    result.infra_rows = len(infra_rows_of(noisy))
    result.tried_again = attempted_again(noisy)
    result.damage = len(damage_of(noisy))
    wait_until(lambda: space.orphans() == [], PATIENCE_S)
    result.orphans = len(space.orphans())
