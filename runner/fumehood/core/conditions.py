"""Conditions on one JSON value, addressed by paths.

The success criteria of tasks and the preconditions of declared tools use them. A condition whose
path does not exist does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fumehood.core.json_values import Json, JsonObject

Condition = Mapping[str, Json]
"""An operation ``op`` with its keys, in the format of criteria."""


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
    check = CONDITIONS.get(str(condition.get("op")))
    try:
        return check is not None and check(condition, state)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError):
        return False


def inner_conditions(condition: Condition) -> tuple[Condition, ...]:
    """Return the conditions that ``not`` and ``any_of`` combine; none for other operations."""
    inner = condition.get("conditions", [condition.get("condition")])
    return (
        tuple(item for item in inner if isinstance(item, dict)) if isinstance(inner, list) else ()
    )


def is_number(value: object) -> bool:
    """Return whether a JSON value is a number; a boolean is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equals(condition: Condition, state: JsonObject) -> bool:
    return resolve(state, condition["path"]) == condition.get("value")


def _exists(condition: Condition, state: JsonObject) -> bool:
    return resolve(state, condition["path"]) is not None


def _in(condition: Condition, state: JsonObject) -> bool:
    return condition.get("value") in resolve(state, condition["path"])  # type: ignore[operator]


def _map_value_equals(condition: Condition, state: JsonObject) -> bool:
    entries = resolve(state, condition["path"])
    return isinstance(entries, dict) and entries.get(condition["key"]) == condition.get("value")  # type: ignore[arg-type]


def _at_least(condition: Condition, state: JsonObject) -> bool:
    value, bound = resolve(state, condition["path"]), condition["value"]
    return is_number(value) and is_number(bound) and value >= bound  # type: ignore[operator]


def _at_most(condition: Condition, state: JsonObject) -> bool:
    value, bound = resolve(state, condition["path"]), condition["value"]
    return is_number(value) and is_number(bound) and value <= bound  # type: ignore[operator]


def _not(condition: Condition, state: JsonObject) -> bool:
    return not any(holds(inner, state) for inner in inner_conditions(condition))


def _any_of(condition: Condition, state: JsonObject) -> bool:
    return any(holds(inner, state) for inner in inner_conditions(condition))


PUBLISHED: Mapping[str, Callable[[Condition, JsonObject], bool]] = {
    "equals": _equals,
    "exists": _exists,
    "in": _in,
    "map_value_equals": _map_value_equals,
}
"""Operations of ToolMisuseBench. Source: docs/reference/toolmisuse.md, Criteria."""

CONDITIONS: Mapping[str, Callable[[Condition, JsonObject], bool]] = {
    **PUBLISHED,
    "any_of": _any_of,
    "at_least": _at_least,
    "at_most": _at_most,
    "not": _not,
}
"""All operations on a state."""
