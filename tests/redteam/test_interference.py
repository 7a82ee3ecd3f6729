"""The limit of a neighbour's latency, and the measurement of it."""

from __future__ import annotations

import pytest

from fumehood.redteam.victim import Interference, Latencies, percentile


def _interference(quiet_p99_ms: float, attacked_p99_ms: float) -> Interference:
    quiet = {"grpc": Latencies(1.0, quiet_p99_ms, 100), "http": Latencies(1.0, 1.0, 100)}
    attacked = {"grpc": Latencies(1.0, attacked_p99_ms, 100), "http": Latencies(1.0, 1.0, 100)}
    return Interference(quiet, attacked)


@pytest.mark.parametrize(("quiet", "attacked"), [(1, 26), (10, 35), (20, 60), (100, 300)])
def test_a_rise_up_to_three_times_or_25_ms_is_permitted(quiet: float, attacked: float) -> None:
    assert not list(_interference(quiet, attacked).raised())


@pytest.mark.parametrize(("quiet", "attacked"), [(1, 27), (10, 36), (20, 61), (100, 301)])
def test_a_higher_rise_is_reported_with_its_numbers(quiet: float, attacked: float) -> None:
    (found,) = _interference(quiet, attacked).raised()
    assert found.startswith(f"a neighbour's grpc calls took {attacked} ms (p99), and {quiet} ms")


def test_the_numbers_are_part_of_the_json() -> None:
    value = _interference(10, 36).to_json()
    assert value["grpc"] == {
        "p50_ms": 1.0,
        "p99_ms": 36,
        "calls": 100,
        "quiet_p50_ms": 1.0,
        "quiet_p99_ms": 10,
        "limit_p99_ms": 35.0,
    }


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile([], 0.99) == 0
    assert percentile([5.0, 1.0, 3.0], 0.5) == 3.0
    assert percentile([5.0, 1.0, 3.0], 0.99) == 5.0
