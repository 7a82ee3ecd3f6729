"""Boxes start with the highest rate that the machine allows, and no more of them at once."""

from __future__ import annotations

from itertools import pairwise
from threading import Barrier, Event, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.engines.start_limit import FIRST, MOST, SAME, StartLimit, StartRate
from tests.parts.listening import wait_until

LEVELS = [1, 2, 4, 8, 16, 32, 64]

rates_up_and_down = st.builds(
    lambda up, down: [*sorted(up), *sorted(down, reverse=True)],
    st.lists(st.floats(1, 1000), min_size=3, max_size=3),
    st.lists(st.floats(1, 1000), min_size=4, max_size=4),
).map(lambda rates: dict(zip(LEVELS, rates, strict=True)))
"""Start rate by number at once. It has one maximum, except for steps that count as equal."""


def is_unimodal_in_clear_steps(rates: dict[int, float]) -> bool:
    """Whether each step to the best number is a clear gain, and each step away no gain."""
    best = max(LEVELS, key=lambda level: rates[level])
    before = [rates[level] for level in LEVELS if level <= best]
    after = [rates[level] for level in LEVELS if level >= best]
    climbs = all(low < SAME * high for low, high in pairwise(before))
    return climbs and all(high >= low for high, low in pairwise(after))


def play(rate: StartRate, rates: dict[int, float], starts: int, now_s: float = 0.0) -> list[int]:
    """Start boxes, of which some always wait; return the limit after each start."""
    limits = []
    for _ in range(starts):
        now_s += 1 / rates[rate.limit]
        rate.ended(now_s, is_full=True)
        limits.append(rate.limit)
    return limits


@pytest.mark.slow
@given(rates_up_and_down.filter(is_unimodal_in_clear_steps))
def test_most_boxes_start_at_the_number_with_the_highest_rate(rates: dict[int, float]) -> None:
    best = max(LEVELS, key=lambda level: rates[level])
    limits = play(StartRate(), rates, 6_000)[-3_000:]
    assert limits.count(best) >= len(limits) / 2
    assert set(limits) <= {best // 2, best, 2 * best}


@given(st.lists(st.floats(0.1, 1000), min_size=7, max_size=7))
def test_the_number_is_always_one_of_those_that_are_allowed(measured: list[float]) -> None:
    assert set(play(StartRate(), dict(zip(LEVELS, measured, strict=True)), 1_000)) <= set(LEVELS)


def test_of_equally_high_rates_the_smallest_number_is_taken() -> None:
    limits = play(StartRate(), dict.fromkeys(LEVELS, 10.0), 5_000)
    assert limits.count(1) > len(limits) / 2


def test_a_machine_that_changes_gets_another_number() -> None:
    rate = StartRate()
    play(rate, {level: float(level) for level in LEVELS}, 10_000)
    assert rate.limit >= MOST // 2
    limits = play(rate, {level: 1.0 / level for level in LEVELS}, 10_000, now_s=1e6)
    assert limits[-2_000:].count(1) > 1_000


@given(st.lists(st.floats(0, 10), max_size=200))
def test_without_demand_the_number_stays(times_s: list[float]) -> None:
    rate = StartRate()
    for now_s in sorted(times_s):
        rate.ended(now_s, is_full=False)
    assert rate.limit == FIRST


def test_no_more_boxes_start_at_once_than_the_limit() -> None:
    limit, inside, leave = StartLimit(), Barrier(FIRST + 1), Event()
    entered: list[int] = []

    def start(number: int) -> None:
        with limit:
            entered.append(number)
            if len(entered) <= FIRST:
                inside.wait(10)
                leave.wait(10)

    threads = [Thread(target=start, args=(number,)) for number in range(3 * FIRST)]
    for thread in threads:
        thread.start()
    inside.wait(10)
    assert len(entered) == FIRST
    leave.set()
    assert wait_until(lambda: len(entered) == 3 * FIRST)
    for thread in threads:
        thread.join(10)


def test_after_a_start_that_fails_the_next_one_begins() -> None:
    limit = StartLimit()
    for _ in range(3 * FIRST):
        try:
            with limit:
                raise OSError
        except OSError:
            continue
    with limit:
        pass
