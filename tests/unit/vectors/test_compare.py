"""The first difference is named by where it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from fumehood.vectors.compare import first_difference
from tests.property.packages.values import VALUES, bounded, same


@pytest.mark.parametrize(
    ("expected", "actual", "said"),
    [
        (1, 1.0, ": 1.0, expected 1"),
        (True, 1, ": 1, expected true"),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "a[1].b: 3, expected 2"),
        ({"a": 1}, {}, "a: missing"),
        ({}, {"a": 1}, "a: not expected"),
        ([1, 2], [1], ": 1 entries, expected 2"),
        ([1], {"0": 1}, ': {"0":1}, expected [1]'),
        ({"b": 1, "a": 1}, {"b": 2, "a": 2}, "a: 2, expected 1"),
        ("x" * 500, "", f': "", expected "{"x" * 116}...'),
    ],
)
def test_it_says_where_and_how(expected: Any, actual: Any, said: str) -> None:
    assert first_difference(expected, actual) == said


@bounded
@given(VALUES, VALUES)
def test_there_is_one_exactly_when_the_values_are_not_the_same(one: Any, other: Any) -> None:
    assert (first_difference(one, other) is None) == same(one, other)


@bounded
@given(VALUES)
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert first_difference(value, value) is None
