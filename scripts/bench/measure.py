"""Taking times."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report."""

    what: str
    value: str
    goal: str = ""
    met: bool | None = None
    """None where there is no goal."""


def ratio(
    what: str, mine: float, other: float, goal: float, *, at_least: bool = False, detail: str = ""
) -> Figure:
    """Return a ratio with its goal.

    Args:
        what: what is compared.
        mine: this project's figure.
        other: the peer's, in the same unit and from the same run.
        goal: bound of the ratio.
        at_least: True where the ratio must reach the goal rather than stay below it.
        detail: the two figures with their unit.
    """
    value = mine / other
    met = value >= goal if at_least else value <= goal
    word = "at least" if at_least else "at most"
    return Figure(what, f"{value:.2f}×  {detail}".rstrip(), f"{word} {goal:g}×", met)


def best_of(rounds: int, work: Callable[[], float]) -> float:
    """Return the median of ``rounds`` results of ``work``, after one that does not count."""
    work()
    return median(work() for _ in range(rounds))


def timed(work: Callable[[], object]) -> float:
    """Return how long ``work`` took, seconds."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def load_of_machine(when: str) -> Figure:
    """Return the load of this machine over the last minute, and its number of processors."""
    value = f"{os.getloadavg()[0]:.1f}, {os.cpu_count()} processors"
    return Figure(f"load of the machine {when}", value)
