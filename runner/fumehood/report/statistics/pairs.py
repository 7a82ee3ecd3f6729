"""Two agents, or one agent twice, on the same tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from scipy.stats import binomtest, permutation_test

from fumehood.report.results import Result, Results, by_domain, by_family
from fumehood.report.statistics.intervals import SEED, Interval, mean_intervals, share_interval
from fumehood.report.statistics.metrics import METRICS, Metric, Unit

PERMUTATIONS = 9999


@dataclass(frozen=True, slots=True)
class Pair:
    """Two graded episodes of the same task and trial."""

    first: Result
    second: Result

    @property
    def change(self) -> int:
        """1 where only the second succeeded, -1 where only the first did, else 0."""
        return int(self.second.success is True) - int(self.first.success is True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """What can be compared, and how much cannot."""

    pairs: tuple[Pair, ...]
    unmatched: int
    """Episodes whose task and trial only one side has."""
    differing: int
    """Episodes of tasks that have one name on both sides but are not the same task."""
    undecided: int
    """Pairs in which a side has no verdict."""


class Test(Enum):
    """How a difference in success is tested."""

    MCNEMAR = "McNemar, exact"
    """One trial a task: of the tasks that flipped, did as many flip one way as the other?"""
    PERMUTATION = "sign-flip permutation over tasks"
    """Several trials a task: McNemar would take them for independent."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Second minus first, on the pairs that have the value on both sides."""

    first: float | None
    second: float | None
    value: float | None
    interval: Interval | None
    over: int


@dataclass(frozen=True, slots=True)
class Flips:
    """How pairs fell."""

    both: int
    lost: int
    """Only the first succeeded."""
    won: int
    """Only the second succeeded."""
    neither: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The second against the first."""

    pairing: Pairing
    flips: Flips
    success: Difference
    metrics: dict[str, Difference]
    test: Test
    p_value: float | None
    """Chance of so large a difference between equals; None where there is no pair."""
    by_fault: dict[str, tuple[Flips, Difference]]
    by_domain: dict[str, tuple[Flips, Difference]]

    @property
    def flipped(self) -> list[Pair]:
        """The pairs that fell differently, losses first."""
        return sorted(
            (pair for pair in self.pairing.pairs if pair.change), key=lambda pair: pair.change
        )


def pair_up(first: Results, second: Results) -> Pairing:
    """Match episodes by task and trial."""
    others = {_key(result): result for result in second}
    matched = [(result, others[_key(result)]) for result in first if _key(result) in others]
    alike = [(one, other) for one, other in matched if one.task.digest == other.task.digest]
    decided = [Pair(one, other) for one, other in alike if None not in (one.success, other.success)]
    return Pairing(
        pairs=tuple(decided),
        unmatched=len(first) + len(second) - 2 * len(matched),
        differing=len(matched) - len(alike),
        undecided=len(alike) - len(decided),
    )


def compare(first: Results, second: Results) -> Comparison:
    """Compare two sets of results, each with at most one episode a task and trial."""
    pairing = pair_up(first, second)
    pairs = pairing.pairs
    metrics = {metric.name: difference(pairs, metric) for metric in METRICS}
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
    """Count how pairs fell."""
    changes = [pair.change for pair in pairs]
    both = sum(pair.first.success is True and pair.second.success is True for pair in pairs)
    lost, won = changes.count(-1), changes.count(1)
    return Flips(both, lost, won, len(pairs) - both - lost - won)


def difference(pairs: Sequence[Pair], metric: Metric) -> Difference:
    """Return the mean difference in a metric, with a paired bootstrap interval over tasks."""
    known = [
        (pair.first.task.task_id, one, other)
        for pair in pairs
        if (one := metric.of(pair.first)) is not None
        and (other := metric.of(pair.second)) is not None
    ]
    if not known:
        return Difference(None, None, None, None, 0)
    first = float(np.mean([one for _, one, _ in known]))
    second = float(np.mean([other for _, _, other in known]))
    sums, counts = _by_task([(task, other - one) for task, one, other in known])
    (interval,) = mean_intervals(sums, counts)
    if metric.unit is Unit.SHARE and not sums.any() and first == second:
        interval = _no_flip_interval(len(sums))
    return Difference(first, second, second - first, interval, len(known))


def _no_flip_interval(tasks: int) -> Interval:
    """Return how large a difference can hide where no task showed one; a bootstrap would say none."""
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
    # A single task's sign says nothing, and where no task changed there is nothing to test.
    if len(sums) < 2 or not sums.any():
        return 1.0
    drawn = permutation_test(
        (sums[:, 0],), np.sum, permutation_type="samples", n_resamples=PERMUTATIONS, rng=SEED
    )
    return float(drawn.pvalue)


def _by_task(values: Sequence[tuple[str, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum and the number of the values of each task, as columns."""
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
