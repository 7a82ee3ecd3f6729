"""The first difference between two JSON values is named by its path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from fumehood.orchestrator.replay import first_difference
from tests.property.packages.values import VALUES, bounded, same


@pytest.mark.parametrize(
    ("expected", "actual", "text"),
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
def test_the_first_difference_states_path_and_values(expected: Any, actual: Any, text: str) -> None:
    assert first_difference(expected, actual) == text


@bounded
@given(VALUES, VALUES)
def test_a_difference_is_reported_exactly_if_values_differ(left: Any, right: Any) -> None:
    assert (first_difference(left, right) is None) == same(left, right)


@bounded
@given(VALUES)
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert first_difference(value, value) is None
