"""Compares two sets of results on the same tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fumehood.report.results import Result, Results, by_domain, by_family
from fumehood.report.statistics.clusters import Test, difference_interval, significance
from fumehood.report.statistics.intervals import Interval
from fumehood.report.statistics.metrics import METRICS, Metric, Unit, metrics_of


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
    changes = _by_task((pair, float(pair.change)) for pair in pairs)
    test, p_value = significance([changes], is_share=True)
    return Comparison(
        pairing=pairing,
        flips=count_flips(pairs),
        success=metrics["task_success"],
        metrics=metrics,
        test=test,
        p_value=p_value if pairs else None,
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
    """Return the mean difference in a metric, with an interval over tasks."""
    known = [
        (pair, first_value, second_value)
        for pair in pairs
        if (first_value := metric.of(pair.first)) is not None
        and (second_value := metric.of(pair.second)) is not None
    ]
    if not known:
        return Difference(None, None, None, None, 0)
    first = float(np.mean([first_value for _, first_value, _ in known]))
    second = float(np.mean([second_value for _, _, second_value in known]))
    changes = _by_task(
        (pair, second_value - first_value) for pair, first_value, second_value in known
    )
    interval = difference_interval([changes], is_share=metric.unit is Unit.SHARE)
    return Difference(first, second, second - first, interval, len(known))


def _by_task(changes: Iterable[tuple[Pair, float]]) -> dict[str, list[float]]:
    by_task: dict[str, list[float]] = defaultdict(list)
    for pair, change in changes:
        by_task[pair.first.task.task_id].append(change)
    return by_task


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
