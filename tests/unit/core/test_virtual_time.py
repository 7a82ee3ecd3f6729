"""Durations of calls in virtual time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.virtual_time import LogNormal, Uniform

ALMOST_1 = 1 - 2**-53
"""The largest quantile that is drawn."""


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_a_uniform_duration_reaches_both_ends_and_stays_between_them(low: int, more: int) -> None:
    latency = Uniform(low, low + more)
    assert (latency.at(0.0), latency.at(ALMOST_1)) == (low, low + more)


@given(st.floats(0, 1))
def test_a_log_normal_duration_is_defined_at_each_quantile_and_limited(quantile: float) -> None:
    latency = LogNormal(median_ms=100, sigma=2.0)
    assert 0 <= latency.at(quantile) <= 100_000
    assert latency.at(0.5) == 100


def test_the_ends_of_a_log_normal_duration_are_defined() -> None:
    latency = LogNormal(median_ms=100, sigma=0.1)
    assert latency.at(0.0) < 100 < latency.at(1.0)
