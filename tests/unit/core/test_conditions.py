"""Conditions on a state: each operation, and paths that do not exist."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.conditions import PUBLISHED, are_equal, holds, resolve

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
STATE: dict[str, Any] = {"tank": {"litres": 5, "open": True}, "log": ["a"], "a.b": {"c": 1}}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"op": "equals", "path": "tank.litres", "value": 5}, True),
        ({"op": "exists", "path": "tank.level"}, False),
        ({"op": "in", "path": "log", "value": "a"}, True),
        ({"op": "in", "path": "tank.litres", "value": "a"}, False),
        ({"op": "map_value_equals", "path": "tank", "key": "litres", "value": 5}, True),
        ({"op": "at_least", "path": "tank.litres", "value": 5}, True),
        ({"op": "at_least", "path": "tank.litres", "value": 5.5}, False),
        ({"op": "at_most", "path": "tank.litres", "value": 5}, True),
        ({"op": "at_most", "path": "tank.litres", "value": 4}, False),
        ({"op": "at_least", "path": "tank.open", "value": 0}, False),
        ({"op": "at_least", "path": "tank.litres", "value": "4"}, False),
        ({"op": "at_most", "path": "absent", "value": 4}, False),
        ({"op": "not", "condition": {"op": "exists", "path": "absent"}}, True),
        ({"op": "not", "condition": {"op": "exists", "path": "tank"}}, False),
        (
            {
                "op": "any_of",
                "conditions": [{"op": "exists", "path": "no"}, {"op": "exists", "path": "log.-1"}],
            },
            True,
        ),
        ({"op": "any_of", "conditions": []}, False),
        ({"op": "not", "condition": {"op": "equals", "path": "absent", "value": 1}}, False),
        ({"op": "not", "condition": {"op": "equals", "path": "log.0", "value": 1}}, True),
        ({"op": "not", "condition": {"op": "at_most", "path": "absent", "value": 1}}, False),
        ({"op": "not", "condition": {"op": "sometimes", "path": "tank"}}, False),
        ({"op": "not"}, False),
        (
            {"op": "not", "condition": {"op": "not", "condition": {"op": "in", "path": "absent"}}},
            False,
        ),
        ({"op": "equals", "path": "tank.open", "value": 1}, False),
        ({"op": "equals", "path": "tank.litres", "value": 5.0}, True),
        ({"op": "equals", "path": "tank", "value": {"litres": 5, "open": 1}}, False),
        ({"op": "equals", "path": "log", "value": ["a"]}, True),
        ({"op": "map_value_equals", "path": "tank", "key": "open", "value": 1}, False),
        ({"op": "sometimes", "path": "tank"}, False),
        ({"op": "exists", "path": 3}, False),
    ],
)
def test_a_condition_holds_or_not(condition: dict[str, Any], expected: bool) -> None:
    assert holds(condition, STATE) is expected


def test_the_published_operations_take_true_for_one() -> None:
    condition: dict[str, Any] = {"op": "equals", "path": "tank.open", "value": 1}
    assert PUBLISHED["equals"](condition, STATE)
    assert not holds(condition, STATE)


@pytest.mark.slow
@given(JSON)
def test_a_value_equals_itself_and_not_a_list_of_it(value: Any) -> None:
    assert are_equal(value, value)
    assert not are_equal(value, [value])


def test_the_steps_of_a_tuple_may_contain_dots() -> None:
    assert resolve(STATE, ("a.b", "c")) == 1
    with pytest.raises(KeyError):
        resolve(STATE, "a.b.c")
