"""Compares two sets of results on the same tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from scipy.stats import binomtest, permutation_test

from fumehood.report.results import Result, Results, by_domain, by_family
from fumehood.report.statistics.intervals import SEED, Interval, mean_intervals, share_interval
from fumehood.report.statistics.metrics import METRICS, Metric, Unit, metrics_of

PERMUTATIONS = 9999


@dataclass(frozen=True, slots=True)
class Pair:
    """Two graded episodes of the same task and trial."""

    first: Result
    second: Result

    @property
    def change(self) -> int:
        """1 if only the second succeeded, -1 if only the first did, else 0."""
        return int(self.second.success is True) - int(self.first.success is True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The pairs of two sets of results, and the numbers of episodes that cannot be paired."""

    pairs: tuple[Pair, ...]
    unmatched: int
    """Episodes with a task or trial that only one side has."""
    differing: int
    """Episodes of different tasks with the same name."""
    undecided: int
    """Pairs in which at least one episode has no score."""


class Test(Enum):
    """The significance test of a difference in success."""

    MCNEMAR = "McNemar, exact"
    """For one trial per task: binomial test on the flipped tasks."""
    PERMUTATION = "sign-flip permutation over tasks"
    """For several trials per task, which are not independent, as McNemar's test requires."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Second minus first, over the pairs with the value on both sides."""

    first: float | None
    second: float | None
    value: float | None
    interval: Interval | None
    over: int


@dataclass(frozen=True, slots=True)
class Flips:
    """Numbers of pairs by which side succeeded."""

    both: int
    lost: int
    """Only the first succeeded."""
    won: int
    """Only the second succeeded."""
    neither: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison of the second set of results with the first."""

    pairing: Pairing
    flips: Flips
    success: Difference
    metrics: dict[str, Difference]
    test: Test
    p_value: float | None
    """Probability of such a difference between equal agents; None without a pair."""
    by_fault: dict[str, tuple[Flips, Difference]]
    by_domain: dict[str, tuple[Flips, Difference]]

    @property
    def flipped(self) -> list[Pair]:
        """The pairs in which only one side succeeded, losses first."""
        return sorted(
            (pair for pair in self.pairing.pairs if pair.change), key=lambda pair: pair.change
        )


def pair_up(first: Results, second: Results) -> Pairing:
    """Match episodes by task and trial."""
    second_by_key = {_key(result): result for result in second}
    matched = [
        (result, second_by_key[_key(result)]) for result in first if _key(result) in second_by_key
    ]
    alike = [
        (first, second) for first, second in matched if first.task.digest == second.task.digest
    ]
    decided = [
        Pair(first, second)
        for first, second in alike
        if None not in (first.success, second.success)
    ]
    return Pairing(
        pairs=tuple(decided),
        unmatched=len(first) + len(second) - 2 * len(matched),
        differing=len(matched) - len(alike),
        undecided=len(alike) - len(decided),
    )


def compare(first: Results, second: Results) -> Comparison:
    """Compare two sets of results, each with at most one episode per task and trial."""
    pairing = pair_up(first, second)
    pairs = pairing.pairs
    shared = metrics_of([pair.second for pair in pairs])
    metrics = {metric.name: difference(pairs, metric) for metric in shared}
    one_trial = len({pair.first.task.task_id for pair in pairs}) == len(pairs)
    test = Test.MCNEMAR if one_trial else Test.PERMUTATION
    return Comparison(
        pairing=pairing,
        flips=count_flips(pairs),
        success=metrics["task_success"],
        metrics=metrics,
        test=test,
        p_value=_p_value(pairs, test) if pairs else None,
        by_fault=_by_group(pairs, by_family),
        by_domain=_by_group(pairs, by_domain),
    )


def count_flips(pairs: Sequence[Pair]) -> Flips:
    """Count pairs by which side succeeded."""
    changes = [pair.change for pair in pairs]
    both = sum(pair.first.success is True and pair.second.success is True for pair in pairs)
    lost, won = changes.count(-1), changes.count(1)
    return Flips(both, lost, won, len(pairs) - both - lost - won)


def difference(pairs: Sequence[Pair], metric: Metric) -> Difference:
    """Return the mean difference in a metric, with a paired bootstrap interval over tasks."""
    known = [
        (pair.first.task.task_id, first_value, second_value)
        for pair in pairs
        if (first_value := metric.of(pair.first)) is not None
        and (second_value := metric.of(pair.second)) is not None
    ]
    if not known:
        return Difference(None, None, None, None, 0)
    first = float(np.mean([first_value for _, first_value, _ in known]))
    second = float(np.mean([second_value for _, _, second_value in known]))
    sums, counts = _by_task(
        [(task, second_value - first_value) for task, first_value, second_value in known]
    )
    (interval,) = mean_intervals(sums, counts)
    if metric.unit is Unit.SHARE and not sums.any() and first == second:
        interval = _no_flip_interval(len(sums))
    return Difference(first, second, second - first, interval, len(known))


def _no_flip_interval(tasks: int) -> Interval:
    """Return the interval if no task flipped, where a bootstrap interval has no width."""
    flips_at_most = share_interval(0, tasks).high
    return Interval(-flips_at_most, flips_at_most)


def _p_value(pairs: Sequence[Pair], test: Test) -> float:
    if test is Test.MCNEMAR:
        flips = count_flips(pairs)
        return (
            float(binomtest(flips.won, flips.won + flips.lost).pvalue)
            if flips.won + flips.lost
            else 1.0
        )
    sums, _ = _by_task([(pair.first.task.task_id, float(pair.change)) for pair in pairs])
    # The test needs at least two tasks and one change.
    if len(sums) < 2 or not sums.any():
        return 1.0
    drawn = permutation_test(
        (sums[:, 0],), np.sum, permutation_type="samples", n_resamples=PERMUTATIONS, rng=SEED
    )
    return float(drawn.pvalue)


def _by_task(values: Sequence[tuple[str, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum and the count of the values of each task, as columns."""
    rows = {task: row for row, task in enumerate(dict.fromkeys(task for task, _ in values))}
    sums, counts = np.zeros((len(rows), 1)), np.zeros((len(rows), 1))
    for task, value in values:
        sums[rows[task]] += value
        counts[rows[task]] += 1
    return sums, counts


def _by_group(
    pairs: Sequence[Pair], group: Callable[[Results], dict[str, list[Result]]]
) -> dict[str, tuple[Flips, Difference]]:
    of_first = {id(pair.first): pair for pair in pairs}
    groups = {
        name: [of_first[id(result)] for result in results]
        for name, results in group([pair.first for pair in pairs]).items()
    }
    success = METRICS[0]
    return {name: (count_flips(own), difference(own, success)) for name, own in groups.items()}


def _key(result: Result) -> tuple[str, int]:
    return result.task.task_id, result.row.name.trial
