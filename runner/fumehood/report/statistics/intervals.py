"""Confidence intervals of means: bootstrap over tasks.

Episodes of one task are not independent, so the bootstrap draws tasks (Efron and Tibshirani, "An
Introduction to the Bootstrap", 1993, chapters 6 and 13). All columns use the same draws and stay
paired.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from fumehood.report.results import Results
from fumehood.report.statistics.metrics import Mean, Metric, Unit, graded, mean_of, metrics_of

RESAMPLES = 2000
LEVEL = 0.95
LEVEL_QUANTILE = 1.959963984540054
"""Quantile of the standard normal distribution at ``0.5 + 0.5 * LEVEL``, as ``scipy.special.ndtri``
returns it. The import of scipy takes longer than the intervals of a report."""
SEED = 0
_BATCH = 200
"""Resamples in memory at the same time."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval with inclusive ends."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its interval."""

    value: float | None
    over: int
    """Episodes in the mean."""
    tasks: int
    """Tasks of these episodes; the interval is over tasks."""
    interval: Interval | None
    """None with fewer than two tasks."""


def estimates(results: Results, metrics: Iterable[Metric] | None = None) -> dict[str, Estimate]:
    """Return the mean of each metric over the graded episodes, with its interval, by name.

    Args:
        results: of one agent, or of a group of them.
        metrics: None for all metrics of the results.
    """
    metrics = metrics_of(results) if metrics is None else tuple(metrics)
    own = graded(results)
    values = [[metric.of(result) for result in own] for metric in metrics]
    tasks = [result.task.task_id for result in own]
    tables = [_sums_and_counts(tasks, column) for column in values]
    shape = len(metrics), len(set(tasks))
    sums = np.array([sums for sums, _ in tables], dtype=float).reshape(shape).T
    counts = np.array([counts for _, counts in tables], dtype=float).reshape(shape).T
    intervals = mean_intervals(sums, counts)
    by_metric = {}
    for column, metric in enumerate(metrics):
        with_value = int((counts[:, column] > 0).sum())
        by_metric[metric.name] = _estimate(
            mean_of(values[column]), with_value, intervals[column], metric.unit
        )
    return by_metric


def mean_intervals(sums: Floats, counts: Floats, *, seed: int = SEED) -> list[Interval | None]:
    """Return the percentile bootstrap interval of each column's mean.

    Args:
        sums: sum of the values of each task (row) and column; shape (tasks, columns).
        counts: number of values in each sum; same shape.
        seed: seed of the draws; equal inputs give equal intervals.

    Returns:
        One interval per column; None if fewer than two tasks have a value.
    """
    tasks, columns = sums.shape
    with_value = (counts > 0).sum(axis=0)
    if tasks < 2 or not (with_value > 1).any():
        return [None] * columns
    draws = draw_means(sums, counts, seed)
    tail = (1 - LEVEL) / 2
    intervals: list[Interval | None] = []
    for column in range(columns):
        drawn = draws[:, column]
        # A resample without any value is ignored.
        known = drawn[~np.isnan(drawn)]
        if with_value[column] < 2 or not known.size:
            intervals.append(None)
            continue
        low, high = np.quantile(known, [tail, 1 - tail])
        intervals.append(Interval(float(low), float(high)))
    return intervals


def ends(interval: Interval | None) -> tuple[float | None, float | None]:
    """Return both ends of an interval, for two columns of a data table."""
    return (interval.low, interval.high) if interval else (None, None)


def share_interval(successes: int, over: int) -> Interval:
    """Return Wilson's interval of a share (Wilson 1927), used if all tasks agree.

    In this case a bootstrap interval has no width. Source: Newcombe, "Two-sided confidence
    intervals for the single proportion" (1998), method 3.
    """
    share, z = successes / over, LEVEL_QUANTILE
    scale = 2 * (over + z**2)
    centre = (2 * over * share + z**2) / scale
    width = z / scale * sqrt(4 * over * share * (1 - share) + z**2)
    low = centre - width if successes else 0.0
    return Interval(low, 1.0 if successes == over else centre + width)


def draw_means(sums: Floats, counts: Floats, seed: int) -> Floats:
    """Return the mean of each column in each resample; NaN without a value.

    The order of the tasks has no effect, because it can be that in which they ended.
    """
    order = order_of_rows(sums, counts)
    sums, counts, times = sums[order], counts[order], times_drawn(len(sums), seed)
    means = []
    for batch in np.array_split(times, max(1, RESAMPLES // _BATCH)):
        weights = batch.astype(float)
        total = weights @ counts
        drawn = np.full_like(total, np.nan)
        np.divide(weights @ sums, total, out=drawn, where=total > 0)
        means.append(drawn)
    return np.concatenate(means)


def order_of_rows(*parts: Floats) -> NDArray[np.intp]:
    """Return an order of rows that depends only on their values."""
    columns = [column for part in parts for column in part.T]
    return np.lexsort((np.zeros(len(parts[0])), *columns))


@lru_cache(maxsize=8)
def times_drawn(tasks: int, seed: int) -> NDArray[np.uint8]:
    """Return how often each resample (row) contains each task.

    The multinomial draw equals drawing tasks one by one. Results are cached, because the groups of
    a report often have equal sizes.
    """
    rng = np.random.default_rng(seed)
    evenly = np.full(tasks, 1 / tasks)
    # In batches to limit memory: numpy draws 64-bit integers. The probability that a resample
    # contains a task more than 255 times is below 10^-500.
    batches = [
        rng.multinomial(tasks, evenly, size=_BATCH).astype(np.uint8)
        for _ in range(RESAMPLES // _BATCH)
    ]
    return np.concatenate(batches)


def _sums_and_counts(
    tasks: Sequence[str], values: Sequence[float | None]
) -> tuple[list[float], list[int]]:
    """Return the sum and the number of values of each task, in the order of first episodes."""
    by_task: dict[str, list[float]] = {task: [] for task in tasks}
    for task, value in zip(tasks, values, strict=True):
        if value is not None:
            by_task[task].append(value)
    return [sum(own) for own in by_task.values()], [len(own) for own in by_task.values()]


def _estimate(metric_mean: Mean, tasks: int, interval: Interval | None, unit: Unit) -> Estimate:
    if unit is Unit.SHARE and metric_mean.value in (0.0, 1.0) and tasks:
        interval = share_interval(tasks if metric_mean.value else 0, tasks)
    return Estimate(metric_mean.value, metric_mean.over, tasks, interval)
