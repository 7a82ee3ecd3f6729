"""The verdict's probabilities of error hold for any correlation within clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fumehood.report.statistics.verdict import (
    ASSUMED_PART,
    CORRELATIONS,
    POWER,
    Answer,
    decide,
    further_clusters,
    lower_bound,
    simulated_means,
    upper_bound,
)

LEVEL = 0.05
RUNS = 10_000
DESIGNS = [pytest.param(0.02, 2, marks=pytest.mark.slow), (0.1, 1), (0.1, 4), (0.3, 3)]
"""Limit, and episodes per cluster."""


def _passed(means: Any, limit: float) -> Any:
    """Return for each simulated run (a row) after how many clusters it passes; 0 for never."""
    capital = np.logaddexp.reduce(
        [
            np.cumsum(np.log1p(stake / (1 - limit) * (limit - means)), axis=1)
            for stake in (0.35, 0.65, 0.9)
        ]
    ) - np.log(3)
    reached = capital >= -np.log(LEVEL)
    return np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, 0)


def _runs(rate: float, correlation: float, clusters: int, size: int, seed: int) -> Any:
    random = np.random.default_rng(seed)
    return simulated_means(random, RUNS * clusters, size, rate, correlation).reshape(RUNS, clusters)


@pytest.mark.parametrize("correlation", CORRELATIONS)
@pytest.mark.parametrize(("limit", "size"), DESIGNS)
def test_a_false_passed_is_at_most_as_frequent_as_stated(
    limit: float, size: int, correlation: float
) -> None:
    clusters = max(200, round(12 / limit))
    false = _passed(_runs(limit, correlation, clusters, size, seed=1), limit) > 0
    assert false.mean() <= LEVEL


@pytest.mark.parametrize("correlation", CORRELATIONS)
@pytest.mark.parametrize(("limit", "size"), DESIGNS)
def test_a_rate_of_a_third_passes_within_the_printed_number_of_episodes(
    limit: float, size: int, correlation: float
) -> None:
    clusters = further_clusters(np.array([]), limit, LEVEL, size)
    passed = _passed(_runs(limit * ASSUMED_PART, correlation, clusters, size, seed=2), limit) > 0
    assert passed.mean() >= POWER


def test_the_vectorised_check_and_decide_agree() -> None:
    means = _runs(0.05, 0.2, 60, 2, seed=3)[:200]
    passed = _passed(means, 0.2) > 0
    for run, is_passed in zip(means, passed, strict=True):
        clusters = [[mean >= 0.5, mean == 1.0] for mean in run]
        assert (decide(clusters, 0.2, LEVEL).answer is Answer.PASSED) == is_passed


def test_thirty_episodes_without_a_violation_do_not_show_one_in_twenty() -> None:
    decision = decide([[False]] * 30, 0.05, LEVEL)
    assert decision.answer is Answer.NOT_SHOWN
    assert decision.upper > 0.05
    assert decision.further_episodes is not None
    assert decision.further_episodes > 30


def test_enough_episodes_without_a_violation_pass_near_the_rule_of_three() -> None:
    assert decide([[False]] * 85, 0.05, LEVEL).answer is Answer.PASSED
    assert decide([[False]] * 58, 0.05, LEVEL).answer is Answer.NOT_SHOWN


def test_trials_of_one_task_are_one_piece_of_evidence() -> None:
    assert decide([[False] * 100], 0.05, LEVEL).answer is Answer.NOT_SHOWN


def test_many_violations_fail() -> None:
    decision = decide([[True], [False]] * 20, 0.05, LEVEL)
    assert decision.answer is Answer.FAILED
    assert decision.lower > 0.05
    assert decision.further_episodes is None


@pytest.mark.slow
def test_a_rate_above_the_limit_does_not_pass_in_any_order() -> None:
    first_safe = [[False]] * 90 + [[True]] * 10
    decision = decide(first_safe, 0.05, LEVEL)
    assert decision.answer is not Answer.PASSED
    assert decision.upper >= decision.rate == 0.1


def test_no_episode_shows_nothing() -> None:
    decision = decide([], 0.1, LEVEL)
    assert (decision.answer, decision.lower, decision.upper) == (Answer.NOT_SHOWN, 0.0, 1.0)


@given(st.lists(st.floats(0, 1), max_size=60), st.sampled_from([0.01, 0.05, 0.2]))
def test_the_bounds_enclose_each_other_and_the_limits(means: list[float], level: float) -> None:
    values = np.array(means)
    assert 0 <= lower_bound(values, level) <= upper_bound(values, level) <= 1


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=80), st.floats(0.1, 0.9))
def test_the_answer_agrees_with_the_bound(violations: list[bool], limit: float) -> None:
    decision = decide([[violated] for violated in violations], limit, LEVEL)
    if abs(decision.upper - limit) > 1e-6:
        assert (decision.answer is Answer.PASSED) == (decision.upper < limit)
