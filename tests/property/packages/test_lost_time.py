"""Lost time of a seat is counted once, in any order and with any overlap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fumehood.gateway.waiting import Spans

MOMENTS = st.integers(0, 60)
INTERVALS = st.tuples(MOMENTS, MOMENTS).map(lambda pair: (min(pair), max(pair)))


@given(st.lists(INTERVALS, max_size=20))
def test_overlapping_delays_are_deducted_once(intervals: list[tuple[int, int]]) -> None:
    lost = Spans()
    given_back = [lost.add(began, ended) for began, ended in intervals]
    assert min(given_back, default=0) >= 0
    assert sum(given_back) == len(
        {moment for began, ended in intervals for moment in range(began, ended)}
    )
