"""Calibration error: stated confidence against success."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.report.sections.evidence import binned_error

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.0, 1.0])), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("stated", "error"),
    [
        ([], None),
        ([(1.0, 1.0)], 0.0),
        ([(1.0, 0.0)], 1.0),
        ([(0.5, 0.0), (0.5, 1.0)], 0.0),
        # Two bins of two, the last takes the fifth: 0.5 off in the first, exact in the second.
        ([(0.5, 0.0), (0.5, 0.0), (1.0, 1.0), (1.0, 1.0), (1.0, 1.0)], (2 * 0.25 / 5) ** 0.5),
    ],
)
def test_the_error_is_over_bins_of_equal_size(
    stated: list[tuple[float, float]], error: float | None
) -> None:
    assert binned_error(stated, 2) == (None if error is None else pytest.approx(error))


@given(stated=PAIRS, size=st.integers(1, 9))
def test_the_error_is_never_above_one(stated: list[tuple[float, float]], size: int) -> None:
    error = binned_error(stated, size)
    assert error is not None
    assert 0 <= error <= 1


def test_the_published_error_omits_the_last_bin() -> None:
    stated = [(0.5, 0.0), (0.5, 0.0), (1.0, 0.0), (1.0, 0.0), (1.0, 0.0)]
    assert binned_error(stated, 2, omitted=1) == pytest.approx((2 * 0.25 / 5) ** 0.5)
    assert binned_error(stated[:2], 2, omitted=1) == 0
