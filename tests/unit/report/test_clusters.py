"""Intervals and tests of effects have their nominal error rates in simulated experiments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from fumehood.report.statistics.clusters import (
    Clusters,
    clustered_intervals,
    difference_interval,
    holm,
    mean_over_suites,
    sign_flip_p_values,
    significance,
)
from fumehood.report.statistics.flips import flip_interval, mcnemar

EXPERIMENTS = 2000
EFFECT = 0.2


def simulated(
    effect: float, *, suites: int, tasks: int, scaffolds: int, trials: int, seed: int
) -> list[Clusters]:
    """Return the differences between two models in many simulated experiments, one per column.

    The success rate of a task differs by suite, task and scaffold; all episodes of a task share it.
    """
    random = np.random.default_rng(seed)
    clusters = []
    for _ in range(suites):
        easy = random.uniform(0.1, 0.6, size=(tasks, EXPERIMENTS))
        sums = np.zeros((tasks, EXPERIMENTS))
        for _ in range(scaffolds):
            rate = easy + random.uniform(0, 0.15, size=easy.shape)
            for _ in range(trials):
                first, second = random.random((2, *easy.shape))
                sums += (second < rate + effect).astype(float) - (first < rate)
        clusters.append(Clusters(sums, np.full_like(sums, scaffolds * trials)))
    return clusters


ONE_PAIR = [
    {"suites": 1, "tasks": tasks, "scaffolds": 1, "trials": 1} for tasks in (20, 30, 40, 100)
]
SEVERAL_PAIRS = [
    {"suites": 1, "tasks": 40, "scaffolds": 3, "trials": 2},
    {"suites": 3, "tasks": 20, "scaffolds": 3, "trials": 2},
]


def columns(suites: Sequence[Clusters]) -> Iterator[list[dict[str, list[float]]]]:
    """Yield the differences of each simulated experiment with one pair per task."""
    (suite,) = suites
    for column in suite.sums.T:
        yield [{str(task): [float(value)] for task, value in enumerate(column)}]


@pytest.mark.slow
@pytest.mark.parametrize("design", [*ONE_PAIR, *SEVERAL_PAIRS], ids=str)
def test_intervals_cover_a_planted_effect_and_a_null_effect_is_rarely_significant(
    design: dict[str, int],
) -> None:
    planted, null = simulated(EFFECT, **design, seed=1), simulated(0.0, **design, seed=2)
    if design in ONE_PAIR:
        intervals = [difference_interval(own, is_share=True) for own in columns(planted)]
        p_values = np.array([significance(own, is_share=True)[1] for own in columns(null)])
    else:
        intervals, p_values = clustered_intervals(planted), sign_flip_p_values(null)
    covered = [
        interval is not None and interval.low <= EFFECT <= interval.high for interval in intervals
    ]
    assert 0.935 <= np.mean(covered) <= 0.965
    assert np.mean(p_values < 0.05) <= 0.065
    assert float(np.mean(mean_over_suites(planted))) == pytest.approx(EFFECT, abs=0.01)


@given(won=st.integers(0, 60), lost=st.integers(0, 60), unchanged=st.integers(0, 200))
def test_with_one_pair_per_task_the_interval_excludes_zero_if_and_only_if_p_is_small(
    won: int, lost: int, unchanged: int
) -> None:
    pairs = max(2, won + lost + unchanged)
    interval = flip_interval(won, lost, pairs)
    assert -1 <= interval.low <= (won - lost) / pairs <= interval.high <= 1
    assert (interval.low > 0 or interval.high < 0) == (mcnemar(won, lost) < 0.05)
    mirrored = flip_interval(lost, won, pairs)
    assert (mirrored.low, mirrored.high) == pytest.approx((-interval.high, -interval.low))


def test_the_interval_of_flips_is_the_published_one() -> None:
    # Fagerland, Lydersen and Laake 2014, "Recommended tests and confidence intervals for paired
    # binomial proportions", Statistics in Medicine 33: airway hyper-responsiveness, 21 children.
    interval = flip_interval(1, 7, 21)
    assert (interval.low, interval.high) == pytest.approx((-0.517, -0.026), abs=5e-4)
    assert mcnemar(1, 7) == pytest.approx(0.034, abs=5e-4)


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=8))
def test_with_few_tasks_all_signs_are_counted(sums: list[int]) -> None:
    column = np.array([[float(value)] for value in sums])
    (p_value,) = sign_flip_p_values([Clusters(column, np.ones_like(column))])
    signs = list(product((-1, 1), repeat=len(sums)))
    flipped = [abs(sum(s * v for s, v in zip(own, sums, strict=True))) for own in signs]
    assert p_value == pytest.approx(np.mean([value >= abs(sum(sums)) for value in flipped]))


def test_drawn_signs_agree_with_the_exact_test_of_flips() -> None:
    column = np.array([[1.0]] * 15 + [[-1.0]] * 5 + [[0.0]] * 20)
    (p_value,) = sign_flip_p_values([Clusters(column, np.ones_like(column))])
    assert p_value == pytest.approx(binomtest(5, 20).pvalue, abs=0.01)


def test_each_suite_has_the_same_weight() -> None:
    large = Clusters(np.ones((90, 1)), np.ones((90, 1)))
    small = Clusters(np.zeros((10, 1)), np.ones((10, 1)))
    assert mean_over_suites([large, small])[0] == pytest.approx(0.5)


def test_one_task_gives_no_interval_and_no_difference_a_wide_one() -> None:
    one = Clusters(np.ones((1, 1)), np.ones((1, 1)))
    assert clustered_intervals([one]) == [None]
    (interval,) = clustered_intervals([Clusters(np.zeros((20, 1)), np.ones((20, 1)))])
    assert interval is not None
    assert -0.2 < interval.low < 0 < interval.high < 0.2


@given(st.lists(st.floats(0, 1), max_size=12))
def test_corrected_p_values_keep_the_order_and_never_shrink(p_values: list[float]) -> None:
    corrected = holm(p_values)
    assert all(own <= new <= 1 for own, new in zip(p_values, corrected, strict=True))
    assert [new for _, new in sorted(zip(p_values, corrected, strict=True))] == sorted(corrected)
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


@given(st.permutations([0.0, 0.0, 0.25, 0.5, 0.5, 1.0, 1.0, -0.5, -1.0, 0.75, 0.1, 0.2, 0.3, 0.4]))
def test_the_order_in_which_tasks_ended_has_no_effect(values: list[float]) -> None:
    def clusters(ordered: Sequence[float]) -> list[Clusters]:
        sums = np.array([[value] for value in ordered])
        return [Clusters(sums, np.ones_like(sums))]

    in_order, shuffled = clusters(sorted(values)), clusters(values)
    assert clustered_intervals(shuffled) == clustered_intervals(in_order)
    assert sign_flip_p_values(shuffled) == sign_flip_p_values(in_order)
