"""Intervals and tests of mean differences whose values are clustered in tasks and suites.

All functions work on columns, so that many differences on the same tasks share the draws. Each
suite has the same weight: the mean is the mean over suites of the mean over their values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fumehood.report.statistics.flips import flip_interval, mcnemar
from fumehood.report.statistics.intervals import (
    LEVEL,
    SEED,
    Floats,
    Interval,
    draw_means,
    order_of_rows,
    share_interval,
)

SIGN_DRAWS = 9999
_EXACT_TASKS_MAX = 13
"""With at most so many tasks, all assignments of signs are enumerated."""
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Clusters:
    """The values of one suite, summed by task."""

    sums: Floats
    """Sum of the values of each task (row); shape (tasks, columns)."""
    counts: Floats
    """Number of values in each sum; same shape."""

    def means(self) -> Floats:
        """Return the mean over the values of each column."""
        means: Floats = self.sums.sum(axis=0) / self.counts.sum(axis=0)
        return means


class Test(Enum):
    """The significance test of a difference."""

    MCNEMAR = "McNemar"
    """For success with one pair per task in one suite."""
    SIGN_FLIP = "sign flips over tasks"


Differences = Mapping[str, Sequence[float]]
"""The paired differences of each task of one suite; none is empty."""


def difference_interval(
    suites: Sequence[Differences], *, is_share: bool, is_interaction: bool = False
) -> Interval | None:
    """Return the interval of the mean over suites of paired differences.

    Args:
        suites: the differences.
        is_share: whether the values are differences of shares.
        is_interaction: whether the values are differences of differences.

    Returns:
        None with fewer than two tasks in a suite.
    """
    flips = None if is_interaction or not is_share else _flips(suites)
    if flips is None:
        return clustered_intervals(clusters_of(suites), is_share=is_share)[0]
    return flip_interval(*flips, len(suites[0])) if len(suites[0]) > 1 else None


def significance(
    suites: Sequence[Differences], *, is_share: bool, is_interaction: bool = False
) -> tuple[Test, float]:
    """Return the test of the same mean, and its p-value."""
    flips = None if is_interaction or not is_share else _flips(suites)
    if flips is not None:
        return Test.MCNEMAR, mcnemar(*flips)
    return Test.SIGN_FLIP, float(sign_flip_p_values(clusters_of(suites))[0])


def _flips(suites: Sequence[Differences]) -> tuple[int, int] | None:
    """Return how many pairs were won and lost; None unless each task has one pair of shares."""
    values = [value for tasks in suites for own in tasks.values() for value in own]
    if len(suites) > 1 or len(values) > len(suites[0]) or not set(values) <= {-1.0, 0.0, 1.0}:
        return None
    return values.count(1.0), values.count(-1.0)


def clusters_of(suites: Sequence[Differences]) -> list[Clusters]:
    """Return the values of each suite, by task, as one column."""
    return [
        Clusters(
            np.array([[sum(values)] for values in tasks.values()]),
            np.array([[float(len(values))] for values in tasks.values()]),
        )
        for tasks in suites
    ]


def mean_over_suites(suites: Sequence[Clusters]) -> Floats:
    """Return the mean over suites of each column's mean."""
    means: Floats = np.mean([suite.means() for suite in suites], axis=0)
    return means


def clustered_intervals(
    suites: Sequence[Clusters], *, is_share: bool = True
) -> list[Interval | None]:
    """Return a hierarchical bootstrap interval of :func:`mean_over_suites` for each column.

    Tasks are drawn within their suite, with all their values. A percentile interval is too narrow
    for few tasks, so its ends are moved outwards (Hesterberg 2015, "What teachers should know about
    the bootstrap", section 5.2). If all tasks have the same difference, a bootstrap interval has no
    width; that of a share then extends by Wilson's interval of no success.

    Args:
        suites: the values.
        is_share: whether the values are differences of shares.

    Returns:
        One interval per column; None with fewer than two tasks in a suite.
    """
    columns = suites[0].sums.shape[1]
    if any(len(suite.sums) < 2 for suite in suites):
        return [None] * columns
    # Imported here, because a report without comparisons does not need it.
    from scipy.special import ndtr, stdtrit

    tasks = sum(len(suite.sums) for suite in suites)
    free = tasks - len(suites)
    tail = float(ndtr(-np.sqrt((free + 1) / free) * stdtrit(free, 0.5 + LEVEL / 2)))
    drawn = np.mean(
        [draw_means(suite.sums, suite.counts, SEED + at) for at, suite in enumerate(suites)], axis=0
    )
    ends = np.quantile(drawn, [tail, 1 - tail], axis=0)
    widest = share_interval(0, tasks).high if is_share else 0.0
    return [
        Interval(float(low), float(high)) if high > low else _around(float(low), widest)
        for low, high in zip(*ends, strict=True)
    ]


def _around(value: float, distance: float) -> Interval:
    """Return an interval that does not leave the range of the difference."""
    limit = max(1.0, abs(value))
    return Interval(max(-limit, value - distance), min(limit, value + distance))


def sign_flip_p_values(suites: Sequence[Clusters]) -> Floats:
    """Return the two-sided p-value of each column's mean difference.

    If there is no effect, the differences of a task may as well have the opposite sign (Fisher
    1935). With few tasks all signs are enumerated; otherwise they are drawn.
    """
    weighted: Floats = np.concatenate([suite.sums / suite.counts.sum(axis=0) for suite in suites])
    weighted, signs = weighted[order_of_rows(weighted)], _signs(len(weighted))
    observed = np.abs(weighted.sum(axis=0)) - 1e-9
    extreme: Floats = np.zeros(weighted.shape[1])
    for batch in np.array_split(signs, max(1, len(signs) // _BATCH)):
        extreme += (np.abs(batch @ weighted) >= observed).sum(axis=0)
    # The observed signs are one more draw, unless all signs are enumerated.
    own = 0.0 if len(weighted) <= _EXACT_TASKS_MAX else 1.0
    return np.array((extreme + own) / (len(signs) + own), dtype=np.float64)


@lru_cache(maxsize=8)
def _signs(tasks: int) -> NDArray[np.float64]:
    if tasks <= _EXACT_TASKS_MAX:
        bits = (np.arange(2**tasks)[:, None] >> np.arange(tasks)) & 1
    else:
        bits = np.random.default_rng(SEED).integers(0, 2, size=(SIGN_DRAWS, tasks))
    return np.where(bits == 1, 1.0, -1.0)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values that are corrected for their number (Holm 1979)."""
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        highest = max(highest, min(1.0, p_values[at] * (len(p_values) - rank)))
        corrected[at] = highest
    return corrected
