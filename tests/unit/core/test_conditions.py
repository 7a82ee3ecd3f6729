"""Conditions on a state: each operation, and paths that do not exist."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.core.conditions import holds, resolve

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
        ({"op": "sometimes", "path": "tank"}, False),
        ({"op": "exists", "path": 3}, False),
    ],
)
def test_a_condition_holds_or_not(condition: dict[str, Any], expected: bool) -> None:
    assert holds(condition, STATE) is expected


def test_the_steps_of_a_tuple_may_contain_dots() -> None:
    assert resolve(STATE, ("a.b", "c")) == 1
    with pytest.raises(KeyError):
        resolve(STATE, "a.b.c")
