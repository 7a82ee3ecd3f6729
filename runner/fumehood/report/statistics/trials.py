"""Repeated trials: pass@k and pass^k."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np

from fumehood.report.results import Results, by_task
from fumehood.report.statistics.intervals import Interval, mean_intervals, share_interval
from fumehood.report.statistics.metrics import graded


@dataclass(frozen=True, slots=True)
class TrialRate:
    """pass@k or pass^k at one k."""

    k: int
    value: float
    interval: Interval | None
    tasks: int
    """Tasks with at least k graded trials, which are the tasks of the mean."""


@dataclass(frozen=True, slots=True)
class TrialRates:
    """Both rates at every k for which a task has enough trials."""

    pass_at: tuple[TrialRate, ...]
    pass_all: tuple[TrialRate, ...]


def pass_at(trials: int, successes: int, k: int) -> float:
    """Return pass@k, the probability that at least one of k trials succeeds.

    Unbiased estimate of Chen et al., "Evaluating Large Language Models Trained on Code", 2021.
    """
    return 1 - comb(trials - successes, k) / comb(trials, k)


def pass_all(trials: int, successes: int, k: int) -> float:
    """Return pass^k, the probability that k trials all succeed (Yao et al., "τ-bench", 2024)."""
    return comb(successes, k) / comb(trials, k)


def trial_rates(results: Results) -> TrialRates:
    """Return both rates for k = 1, 2, 4 … and the largest number of trials of a task."""
    outcomes = [
        (len(group), sum(result.success is True for result in group))
        for group in by_task(graded(results)).values()
    ]
    trials_max = max((trials for trials, _ in outcomes), default=0)
    any_succeeds, all_succeed = [], []
    for k in _steps(trials_max):
        enough = [(trials, successes) for trials, successes in outcomes if trials >= k]
        any_succeeds.append(
            _rate(k, [pass_at(trials, successes, k) for trials, successes in enough])
        )
        all_succeed.append(
            _rate(k, [pass_all(trials, successes, k) for trials, successes in enough])
        )
    return TrialRates(tuple(any_succeeds), tuple(all_succeed))


def _steps(most: int) -> Iterator[int]:
    k = 1
    while k < most:
        yield k
        k *= 2
    if most:
        yield most


def _rate(k: int, values: list[float]) -> TrialRate:
    column = np.array(values).reshape(-1, 1)
    (interval,) = mean_intervals(column, np.ones_like(column))
    value = float(column.mean())
    if value in (0.0, 1.0):
        interval = share_interval(len(values) if value else 0, len(values))
    return TrialRate(k, value, interval, len(values))
