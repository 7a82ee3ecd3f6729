"""The difference that a plan can detect, by the formula of docs/metrics.md."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.report.statistics.power import detectable_difference

COUNTS = st.integers(1, 1_000)


@pytest.mark.parametrize(
    ("tasks", "pairs", "comparisons", "expected"),
    [
        # c = 1.9600 + 0.8416, m = 100
        (100, 1, 1, 0.1478),
        # m = 100 * 3 / 2
        (100, 3, 1, 0.1222),
        # c = 2.2414 + 0.8416
        (100, 1, 2, 0.1614),
    ],
)
def test_it_equals_the_formula(tasks: int, pairs: int, comparisons: int, expected: float) -> None:
    assert detectable_difference(tasks, pairs, comparisons) == pytest.approx(expected, abs=1e-4)


@given(COUNTS, COUNTS, COUNTS)
def test_more_tasks_and_pairs_detect_less_and_more_comparisons_more(
    tasks: int, pairs: int, comparisons: int
) -> None:
    detected = detectable_difference(tasks, pairs, comparisons)
    assert 0 < detected < 1
    assert detectable_difference(tasks + 1, pairs, comparisons) < detected
    assert detectable_difference(tasks, pairs + 1, comparisons) < detected
    assert detectable_difference(tasks, pairs, comparisons + 1) > detected
