"""Conditions on one JSON value, addressed by paths.

The success criteria of tasks and the preconditions of declared tools use them. A condition whose
path does not exist does not hold, and neither does its negation, except for ``exists``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import eq

from fumehood.core.json_values import Json, JsonObject

Condition = Mapping[str, Json]
"""An operation ``op`` with its keys, in the format of criteria."""
Check = Callable[[Condition, JsonObject], bool]
AS_IDS = "as_ids"
"""Key of a condition on an argument of a call: whether numbers and their texts are the same ID."""


def resolve(value: Json, path: Json | Sequence[str]) -> Json:
    """Return the value at a path of object keys and list positions, which may be negative.

    Args:
        value: where the path starts.
        path: steps joined by dots, or a tuple of steps, which may contain dots. In a tuple, a list
            position has one notation, because an agent may have written it.

    Raises:
        KeyError, IndexError, TypeError, ValueError: the path does not exist.
        AttributeError: the path is neither a string nor a tuple.
    """
    if not isinstance(path, str | tuple):
        raise AttributeError(f"path must be a string, not {path!r}")
    for step in path.split(".") if isinstance(path, str) else path:
        if isinstance(value, dict):
            value = value[step]
        elif isinstance(value, list) and (isinstance(path, str) or str(int(step)) == step):
            value = value[int(step)]
        else:
            raise KeyError(step)
    return value


def holds(condition: Condition, state: JsonObject) -> bool:
    """Return whether a condition holds; False if the operation is unknown or the path missing."""
    return _decide(condition, state) is True


def _decide(condition: Condition, state: JsonObject) -> bool | None:
    """Return whether a condition holds; None if the operation is unknown or the path missing."""
    op, inner = condition.get("op"), inner_conditions(condition)
    if op == "not":
        decided = [_decide(each, state) for each in inner]
        return None if None in decided or not decided else True not in decided
    if op == "any_of":
        decided = [_decide(each, state) for each in inner]
        return True if True in decided else None if None in decided else False
    check = (_ON_IDS if condition.get(AS_IDS) else _ON_A_PATH).get(str(op))
    try:
        return None if check is None else check(condition, state)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError):
        return False if op == "exists" else None


def are_equal(value: Json, other: Json) -> bool:
    """Return whether JSON values are equal: 1 equals 1.0, but not true."""
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(
            are_equal(inner, other[key]) for key, inner in value.items()
        )
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(are_equal, value, other))
    return isinstance(value, bool) == isinstance(other, bool) and value == other


def as_id(value: Json) -> Json:
    """Return a number as the text that worlds take for the same ID; any other value unchanged."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if is_number(value) else value


def as_ids(value: Json) -> Json:
    """Return a value in which 5, 5.0 and "5" are the same, because worlds take them for the same
    ID."""
    if isinstance(value, dict):
        return {key: as_ids(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_ids(inner) for inner in value]
    return as_id(value)


def are_same_ids(value: Json, other: Json) -> bool:
    """Return whether values are equal where numbers and their texts are the same ID."""
    return are_equal(as_ids(value), as_ids(other))


def inner_conditions(condition: Condition) -> tuple[Condition, ...]:
    """Return the conditions that ``not`` and ``any_of`` combine; none for other operations."""
    inner = condition.get("conditions", [condition.get("condition")])
    return (
        tuple(item for item in inner if isinstance(item, dict)) if isinstance(inner, list) else ()
    )


def is_number(value: object) -> bool:
    """Return whether a JSON value is a number; a boolean is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _exists(condition: Condition, state: JsonObject) -> bool:
    return resolve(state, condition["path"]) is not None


def _comparisons(equal: Callable[[Json, Json], bool]) -> dict[str, Check]:
    """Return the operations of ToolMisuseBench with a rule of equality."""

    def equals(condition: Condition, state: JsonObject) -> bool:
        return equal(resolve(state, condition["path"]), condition.get("value"))

    def is_in(condition: Condition, state: JsonObject) -> bool:
        items, value = resolve(state, condition["path"]), condition.get("value")
        if isinstance(items, list):
            return any(equal(item, value) for item in items)
        return (as_id(value) if equal is are_same_ids else value) in items  # type: ignore[operator]

    def map_value_equals(condition: Condition, state: JsonObject) -> bool:
        entries = resolve(state, condition["path"])
        key = as_id(condition["key"]) if equal is are_same_ids else condition["key"]
        return isinstance(entries, dict) and equal(entries.get(key), condition.get("value"))  # type: ignore[arg-type]

    return {
        "equals": equals,
        "exists": _exists,
        "in": is_in,
        "map_value_equals": map_value_equals,
    }


def _at_least(condition: Condition, state: JsonObject) -> bool:
    value, bound = resolve(state, condition["path"]), condition["value"]
    return is_number(value) and is_number(bound) and value >= bound  # type: ignore[operator]


def _at_most(condition: Condition, state: JsonObject) -> bool:
    value, bound = resolve(state, condition["path"]), condition["value"]
    return is_number(value) and is_number(bound) and value <= bound  # type: ignore[operator]


PUBLISHED: Mapping[str, Check] = _comparisons(eq)
"""Operations of ToolMisuseBench, where true equals 1. Source: docs/reference/toolmisuse.md,
Criteria."""

_ON_A_PATH: Mapping[str, Check] = {
    **_comparisons(are_equal),
    "at_least": _at_least,
    "at_most": _at_most,
}
_ON_IDS: Mapping[str, Check] = {**_ON_A_PATH, **_comparisons(are_same_ids)}
CONDITIONS = frozenset({*_ON_A_PATH, "any_of", "not"})
"""All operations on a state."""
