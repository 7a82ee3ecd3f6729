"""Intervals, trials and pairs agree with a library, or with exhaustive counting."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import bootstrap, chi2

from fumehood.core.score import Score
from fumehood.report.results import Result
from fumehood.report.statistics.intervals import (
    LEVEL,
    LEVEL_QUANTILE,
    estimates,
    mean_intervals,
)
from fumehood.report.statistics.metrics import METRICS
from fumehood.report.statistics.pairs import compare
from fumehood.report.statistics.trials import pass_all, pass_at, trial_rates
from tests.property.report.rows import facts, result, result_lists


def test_the_quantile_of_the_level_is_that_of_scipy() -> None:
    assert ndtri(0.5 + 0.5 * LEVEL) == LEVEL_QUANTILE


@settings(max_examples=20)
@given(st.lists(st.integers(0, 10), min_size=8, max_size=60), st.integers(0, 2**32))
def test_an_interval_has_the_coverage_of_the_scipy_bootstrap(values: list[int], seed: int) -> None:
    column = np.array(values, dtype=float).reshape(-1, 1)
    (interval,) = mean_intervals(column, np.ones_like(column), seed=seed)
    theirs = bootstrap((column[:, 0],), np.mean, n_resamples=4000, rng=seed, method="percentile")
    drawn = theirs.bootstrap_distribution
    assert interval is not None
    # The means are discrete, so an end may be on a step: what is below it and what iss up to it
    # have to hold the share between them. Five standard deviations of what chance does to either.
    for end, share in ((interval.low, 0.025), (interval.high, 0.975)):
        assert (drawn < end - 1e-9).mean() <= share + 0.025
        assert (drawn <= end + 1e-9).mean() >= share - 0.025


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(result_lists())
def test_an_interval_contains_its_mean_and_is_deterministic(
    results: list[Result],
) -> None:
    found = estimates(results)
    assert found == estimates(results)
    for metric in METRICS:
        estimate = found[metric.name]
        if estimate.interval is not None and estimate.value is not None:
            assert estimate.interval.low - 1e-9 <= estimate.value <= estimate.interval.high + 1e-9


def test_if_all_tasks_agree_the_interval_still_has_a_width() -> None:
    results = [result(facts(f"t{n}"), Score(True, {}, {"tool_calls": 1})) for n in range(20)]
    interval = estimates(results)["task_success"].interval
    assert interval is not None
    assert interval.high == pytest.approx(1.0)
    assert interval.low == pytest.approx(0.8389, abs=1e-4)  # Wilson's, for 20 of 20


def test_trials_of_one_task_do_not_count_as_several_tasks() -> None:
    results = [
        result(facts("only"), Score(trial % 2 == 0, {}, {"tool_calls": 1}), trial=trial)
        for trial in range(50)
    ]
    assert estimates(results)["task_success"].interval is None


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_pass_at_k_and_pass_hat_k_equal_the_shares_over_all_choices_of_k(
    outcomes: list[bool], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(outcomes)))
    choices = list(combinations(outcomes, k))
    trials, successes = len(outcomes), sum(outcomes)
    assert pass_at(trials, successes, k) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert pass_all(trials, successes, k) == pytest.approx(sum(map(all, choices)) / len(choices))


@settings(max_examples=10, deadline=None)
@given(result_lists(trials=5))
def test_for_one_trial_both_rates_equal_the_mean_success_rate_over_tasks(
    results: list[Result],
) -> None:
    tasks: dict[str, list[bool]] = {}
    for each in results:
        if each.success is not None:
            tasks.setdefault(each.task.task_id, []).append(each.success)
    rates = trial_rates(results)
    if not tasks:
        assert rates.pass_at == rates.pass_all == ()
        return
    expected = sum(sum(own) / len(own) for own in tasks.values()) / len(tasks)
    assert rates.pass_at[0].value == pytest.approx(expected)
    assert rates.pass_all[0].value == pytest.approx(expected)
    for at, every in zip(rates.pass_at, rates.pass_all, strict=True):
        assert every.value <= at.value + 1e-9


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from([(True, True), (True, False), (False, True), (False, False)]), max_size=11
    )
)
def test_with_one_trial_the_interval_and_the_p_value_agree(
    outcomes: list[tuple[bool, bool]],
) -> None:
    first = [
        result(facts(f"t{n}"), Score(a, {}, {"tool_calls": 1})) for n, (a, _) in enumerate(outcomes)
    ]
    second = [
        result(facts(f"t{n}"), Score(b, {}, {"tool_calls": 1})) for n, (_, b) in enumerate(outcomes)
    ]
    compared = compare(first, second)
    flips = [int(b) - int(a) for a, b in outcomes if a != b]
    assert compared.test.value == "McNemar"
    if not outcomes:
        assert compared.p_value is None
    elif flips:
        score = sum(flips) ** 2 / len(flips)
        assert compared.p_value == pytest.approx(chi2.sf(score, 1))
    interval = compared.success.interval
    if interval is not None and compared.p_value is not None:
        assert (interval.low <= 0 <= interval.high) == (compared.p_value >= 0.05)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_every_episode_is_in_a_pair_or_counted_as_left_out(
    data: st.DataObject,
) -> None:
    first = data.draw(result_lists(agent="one"))
    second = data.draw(result_lists(agent="other"))
    compared = compare(first, second)
    pairing, flips = compared.pairing, compared.flips
    assert flips.both + flips.won + flips.lost + flips.neither == len(pairing.pairs)
    in_pairs = 2 * (len(pairing.pairs) + pairing.undecided + pairing.differing)
    assert in_pairs + pairing.unmatched == len(first) + len(second)
    if pairing.pairs:
        gained = sum(
            (pair.second.success is True) - (pair.first.success is True) for pair in pairing.pairs
        )
        assert compared.success.value == pytest.approx(gained / len(pairing.pairs))


@settings(max_examples=10, deadline=None)
@given(result_lists())
def test_results_do_not_differ_from_themselves(results: list[Result]) -> None:
    compared = compare(results, results)
    assert compared.flipped == []
    assert compared.p_value in (None, 1.0)
    assert all(difference.value in (None, 0.0) for difference in compared.metrics.values())
