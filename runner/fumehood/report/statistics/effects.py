"""Effects of the factors of an experiment, paired by task, trial and seed.

A main effect is the change of a metric between two levels of a factor, over the pairs of episodes
that are equal in all other factors. An interaction of two factors is the difference between two
such changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean

from fumehood.report.results import Result
from fumehood.report.runs import FACTORS, Subject
from fumehood.report.statistics.clusters import (
    Test,
    clusters_of,
    difference_interval,
    holm,
    mean_over_suites,
    significance,
)
from fumehood.report.statistics.intervals import Interval
from fumehood.report.statistics.metrics import Metric, Unit

EVERY_SUITE = "all suites"
SOME_SUITES = "suites with pairs"
"""The mean over the suites that have pairs, if others have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A main effect (a level against its baseline level), or an interaction of two factors."""

    metric: str
    unit: Unit
    suite: str
    """:data:`EVERY_SUITE` means the mean over suites."""
    factors: tuple[str, ...]
    """One for a main effect, two for an interaction."""
    baseline: tuple[str, ...]
    """The baseline level of each factor."""
    level: tuple[str, ...]
    value: float
    interval: Interval | None
    tasks: int
    pairs: int
    """Pairs of episodes; for an interaction, pairs of pairs."""
    test: Test
    p_value: float
    p_holm: float = 1.0
    """Corrected for the number of effects of this kind, metric and suite."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The value of a metric in one episode."""

    suite: str
    task: str
    unit: tuple[str, ...]
    """Everything that paired episodes share, apart from the levels."""
    levels: Mapping[str, str]
    value: float


def observations(subjects: Iterable[Subject], metric: Metric) -> list[Observation]:
    """Return the value of a metric in each graded episode on which it is defined."""
    return [
        Observation(
            subject.levels["suite"],
            result.task.task_id,
            _unit(result),
            subject.levels,
            value,
        )
        for subject in subjects
        for result in subject.results
        if result.success is not None and (value := metric.of(result)) is not None
    ]


def _unit(result: Result) -> tuple[str, ...]:
    row = result.row
    return result.task.task_id, result.task.core_digest, str(row.name.trial), str(row.seed)


def levels_of(subjects: Iterable[Subject]) -> dict[str, list[str]]:
    """Return the levels of each factor that has several, in the order of the subjects."""
    levels: dict[str, dict[str, None]] = {factor: {} for factor in FACTORS}
    for subject in subjects:
        for factor in FACTORS:
            if subject.levels[factor]:
                levels[factor][subject.levels[factor]] = None
    return {factor: list(names) for factor, names in levels.items() if len(names) > 1}


def effects_of(subjects: Sequence[Subject], metrics: Sequence[Metric]) -> list[Effect]:
    """Return all main effects and interactions, of each suite and over all suites."""
    levels = {name: own for name, own in levels_of(subjects).items() if name != "suite"}
    effects: list[Effect] = []
    for metric in metrics:
        observed = observations(subjects, metric)
        main = [
            effect
            for factor, (baseline, *others) in levels.items()
            for effect in _main_effects(metric, observed, factor, baseline, others)
        ]
        between = [
            effect
            for first, second in combinations(levels, 2)
            for one in levels[first][1:]
            for other in levels[second][1:]
            for effect in _effects(
                metric,
                observed,
                (first, second),
                (levels[first][0], levels[second][0]),
                (one, other),
            )
        ]
        effects += [*_corrected(main), *_corrected(between)]
    return effects


def main_effects(
    subjects: Sequence[Subject], metrics: Sequence[Metric], factor: str, baseline: str
) -> list[Effect]:
    """Return the effect of each level of one factor, of each suite and over all suites.

    Args:
        subjects: agents of runs.
        metrics: to compare.
        factor: one of ``FACTORS``.
        baseline: its level that the others are compared with.
    """
    others = [level for level in levels_of(subjects)[factor] if level != baseline]
    return [
        effect
        for metric in metrics
        for effect in _corrected(
            _main_effects(metric, observations(subjects, metric), factor, baseline, others)
        )
    ]


def _main_effects(
    metric: Metric,
    observed: Sequence[Observation],
    factor: str,
    baseline: str,
    others: Sequence[str],
) -> list[Effect]:
    return [
        effect
        for level in others
        for effect in _effects(metric, observed, (factor,), (baseline,), (level,))
    ]


Differences = dict[str, dict[str, list[float]]]
"""By suite and task: one difference per pair."""


def differences(
    observed: Sequence[Observation],
    factors: tuple[str, ...],
    baseline: tuple[str, ...],
    level: tuple[str, ...],
) -> Differences:
    """Return the paired differences between levels of one factor, or of two (an interaction).

    Args:
        observed: values of a metric.
        factors: one or two.
        baseline: their baseline levels.
        level: the levels to compare with the baseline.
    """
    free = set(factors)
    # An agent without a model is compared with every model of the other agent.
    if "agent" in free and "model" not in free and _lacks_model(observed, (*baseline, *level)):
        free.add("model")
    corners: dict[tuple[str, ...], dict[tuple[str, ...], list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    tasks = {}
    for one in observed:
        corner = tuple(one.levels[factor] for factor in factors)
        others = tuple(one.levels[name] for name in FACTORS if name not in free)
        key = (one.suite, *one.unit, *others)
        corners[corner][key].append(one.value)
        tasks[key] = one.suite, one.task
    signed = _signed_corners(baseline, level)
    shared = set.intersection(*(set(corners[corner]) for corner, _ in signed))
    by_suite: Differences = defaultdict(lambda: defaultdict(list))
    for key in (key for key in tasks if key in shared):
        suite, task = tasks[key]
        value = sum(sign * fmean(corners[corner][key]) for corner, sign in signed)
        by_suite[suite][task].append(value)
    return by_suite


def _lacks_model(observed: Iterable[Observation], agents: Sequence[str]) -> bool:
    return any(not one.levels["model"] and one.levels["agent"] in agents for one in observed)


def _signed_corners(
    baseline: tuple[str, ...], level: tuple[str, ...]
) -> list[tuple[tuple[str, ...], int]]:
    if len(baseline) == 1:
        return [(level, 1), (baseline, -1)]
    (first, second), (one, other) = baseline, level
    return [
        ((one, other), 1),
        ((first, other), -1),
        ((one, second), -1),
        ((first, second), 1),
    ]


def _effects(
    metric: Metric,
    observed: Sequence[Observation],
    factors: tuple[str, ...],
    baseline: tuple[str, ...],
    level: tuple[str, ...],
) -> list[Effect]:
    """Return the effect in each suite, and over all suites if there are several."""
    by_suite = differences(observed, factors, baseline, level)
    scopes = {suite: [suite] for suite in by_suite}
    if len(by_suite) > 1:
        is_complete = by_suite.keys() == {one.suite for one in observed}
        scopes = {EVERY_SUITE if is_complete else SOME_SUITES: list(by_suite), **scopes}
    return [
        _effect(metric, scope, factors, baseline, level, [by_suite[name] for name in names])
        for scope, names in scopes.items()
    ]


def _effect(
    metric: Metric,
    scope: str,
    factors: tuple[str, ...],
    baseline: tuple[str, ...],
    level: tuple[str, ...],
    suites: Sequence[Mapping[str, list[float]]],
) -> Effect:
    is_interaction, is_share = len(factors) > 1, metric.unit is Unit.SHARE
    test, p_value = significance(suites, is_share=is_share, is_interaction=is_interaction)
    return Effect(
        metric=metric.name,
        unit=metric.unit,
        suite=scope,
        factors=factors,
        baseline=baseline,
        level=level,
        value=float(mean_over_suites(clusters_of(suites))[0]),
        interval=difference_interval(suites, is_share=is_share, is_interaction=is_interaction),
        tasks=sum(map(len, suites)),
        pairs=sum(len(own) for tasks in suites for own in tasks.values()),
        test=test,
        p_value=p_value,
    )


def _corrected(effects: Sequence[Effect]) -> list[Effect]:
    """Return the effects with p-values that are corrected within each suite."""
    corrected: dict[int, float] = {}
    for suite in dict.fromkeys(effect.suite for effect in effects):
        family = [at for at, effect in enumerate(effects) if effect.suite == suite]
        p_values = holm([effects[at].p_value for at in family])
        corrected.update(zip(family, p_values, strict=True))
    return [replace(effect, p_holm=corrected[at]) for at, effect in enumerate(effects)]
