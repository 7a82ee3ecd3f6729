"""Durations of calls in virtual time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json
from fumehood.core.virtual_time import LogNormal, Samples, Uniform, latency_of

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


def test_a_log_normal_duration_has_the_stated_spread() -> None:
    plain = LogNormal(median_ms=100, sigma=0.0)
    assert {plain.at(quantile) for quantile in (0.0, 0.1, 0.5, 1.0)} == {100}


def test_samples_are_whole_milliseconds_from_zero() -> None:
    assert latency_of({"samples_ms": [5, 0, 3]}, "latency") == Samples((0, 3, 5))


@pytest.mark.parametrize("sample", [-1, 0.5, "3", None])
def test_a_sample_that_is_no_duration_is_refused(sample: Json) -> None:
    with pytest.raises(SpecError, match="all milliseconds, at least 0"):
        latency_of({"samples_ms": [1, sample]}, "latency")
