"""ROC, its area, and the rates of alarms."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from fumehood.report.statistics.monitors import (
    Suspected,
    area,
    operating_point,
    roc,
    spread,
    threshold_within,
)

LEVELS = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
EPISODES = st.lists(
    st.builds(Suspected, st.integers(0, 5), LEVELS, st.booleans()), min_size=2, max_size=40
)


def suspected(harmful: list[float], honest: list[float]) -> list[Suspected]:
    """Return episodes that are one cluster each."""
    classes = [*((value, True) for value in harmful), *((value, False) for value in honest)]
    return [Suspected(at, value, is_harmful) for at, (value, is_harmful) in enumerate(classes)]


def test_a_curve_and_its_area_computed_by_hand() -> None:
    # Pairs: 0.9 beats 0.5, 0.2 and 0.1; 0.5 ties with 0.5 and beats 0.2 and 0.1. 5.5 of 6.
    episodes = suspected([0.9, 0.5], [0.5, 0.2, 0.1])
    assert area(episodes).value == pytest.approx(5.5 / 6)
    points = [(point.threshold, point.false_alarms, point.recall) for point in roc(episodes)]
    third = pytest.approx(1 / 3), pytest.approx(2 / 3)
    assert points == [
        (inf, 0, 0),
        (0.9, 0, 0.5),
        (0.5, third[0], 1),
        (0.2, third[1], 1),
        (0.1, 1, 1),
    ]


@pytest.mark.slow
@given(EPISODES)
def test_the_area_is_the_statistic_of_mann_and_whitney(episodes: list[Suspected]) -> None:
    harmful = [one.suspicion for one in episodes if one.is_harmful]
    honest = [one.suspicion for one in episodes if not one.is_harmful]
    estimate = area(episodes)
    if not harmful or not honest:
        assert estimate.value is None
        assert roc(episodes) == []
        return
    assert estimate.value is not None
    pairs = len(harmful) * len(honest)
    assert estimate.value == pytest.approx(mannwhitneyu(harmful, honest).statistic / pairs)
    if estimate.interval is not None:
        assert 0 <= estimate.interval.low <= estimate.interval.high <= 1


@given(EPISODES)
def test_the_curve_rises_and_the_area_below_it_is_the_area(episodes: list[Suspected]) -> None:
    points = roc(episodes)
    for before, after in pairwise(points):
        assert before.threshold > after.threshold
        assert before.false_alarms <= after.false_alarms
        assert before.recall <= after.recall
    if points:
        assert (points[-1].false_alarms, points[-1].recall) == (1, 1)
        trapezoids = sum(
            (after.false_alarms - before.false_alarms) * (before.recall + after.recall) / 2
            for before, after in pairwise(points)
        )
        assert trapezoids == pytest.approx(area(episodes).value)


def test_a_perfect_monitor_has_area_one_and_still_an_interval() -> None:
    estimate = area(suspected([0.9] * 10, [0.1] * 20))
    assert estimate.value == 1
    assert estimate.interval is not None
    # Wilson's interval of 10 of 10.
    assert estimate.interval.low == pytest.approx(0.722, abs=0.001)


def test_a_random_monitor_has_area_one_half() -> None:
    random = np.random.default_rng(7)
    estimate = area(suspected(list(random.random(300)), list(random.random(300))))
    assert estimate.interval is not None
    assert estimate.interval.low < 0.5 < estimate.interval.high
    assert estimate.interval.high - estimate.interval.low < 0.12


def test_repeated_trials_do_not_narrow_the_interval() -> None:
    once = suspected([0.9, 0.4, 0.7, 0.3], [0.5, 0.2, 0.1, 0.6])
    widths = []
    for episodes in (once, once * 10):
        interval = area(episodes).interval
        assert interval is not None
        widths.append(interval.high - interval.low)
    assert widths[0] == pytest.approx(widths[1])


@pytest.mark.slow
def test_the_interval_covers_the_true_area_of_clustered_episodes() -> None:
    random = np.random.default_rng(11)
    covered = 0
    for _ in range(100):
        episodes = []
        for cluster in range(60):
            is_harmful = cluster % 2 == 0
            mean = random.normal() + is_harmful * 2**0.5
            episodes += [
                Suspected(cluster, float(random.normal(mean)), is_harmful) for _ in range(5)
            ]
        interval = area(episodes).interval
        assert interval is not None
        # Two normal variables with variance 2 and means that differ by √2: Φ(√2 / 2) = 0.760.
        covered += interval.low <= 0.7602 <= interval.high
    assert covered >= 88


def test_the_threshold_keeps_the_false_alarms_within_the_budget() -> None:
    episodes = suspected([0.9, 0.5, 0.3], [0.5, 0.4, 0.2, 0.0])
    assert threshold_within(episodes, 0.0) == 0.9
    assert threshold_within(episodes, 0.25) == 0.5
    assert threshold_within(episodes, 0.5) == 0.3
    assert threshold_within(episodes, 0.25, [0.45]) == 0.45, "an early step of an episode"
    assert threshold_within(episodes, 0.0, [0.45]) == 0.9
    assert threshold_within(suspected([0.5], [0.9]), 0.0) == inf
    assert threshold_within(suspected([0.0], [0.0]), 1.0) == inf, "no suspicion is no alarm"


@pytest.mark.slow
@given(EPISODES, st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0]))
def test_no_threshold_exceeds_its_budget(episodes: list[Suspected], budget: float) -> None:
    threshold = threshold_within(episodes, budget)
    point = operating_point(episodes, threshold)
    assert (point.false_alarms.value or 0.0) <= budget + 1e-9


def test_precision_and_recall_of_a_rule() -> None:
    episodes = suspected([0.9, 0.5, 0.3], [0.5, 0.4, 0.2, 0.0])
    point = operating_point(episodes, 0.5)
    assert point.recall.value == pytest.approx(2 / 3)
    assert point.precision.value == pytest.approx(2 / 3)
    assert point.false_alarms.value == pytest.approx(1 / 4)
    assert point.recall.interval is not None
    silent = operating_point(episodes, inf)
    assert (silent.recall.value, silent.precision.value) == (0, None)


def test_a_spread_has_median_and_ends() -> None:
    assert spread([]) is None
    found = spread([3.0, 1.0, 2.0])
    assert found is not None
    assert (found.median, found.low, found.high, found.over) == (2, 1, 3, 3)
