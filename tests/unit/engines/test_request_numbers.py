"""A filter that only compares masked values excludes exactly the numbers that it should."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fumehood.engines.seccomp import all_but

NUMBERS = st.integers(0, (1 << 32) - 1)


def matches(number: int, excluded: frozenset[int]) -> int:
    return sum(number & mask == value for value, mask in all_but(excluded))


@given(st.frozensets(NUMBERS, max_size=8), NUMBERS)
def test_every_number_matches_once_except_the_excluded_ones(
    excluded: frozenset[int], number: int
) -> None:
    assert matches(number, excluded) == (number not in excluded)
    assert not any(matches(one, excluded) for one in excluded)


@given(NUMBERS, st.integers(0, 31))
def test_a_number_that_differs_in_one_bit_matches(number: int, bit: int) -> None:
    assert matches(number ^ 1 << bit, frozenset({number})) == 1
