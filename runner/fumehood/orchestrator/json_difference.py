"""Finds the first difference between two JSON values."""

from __future__ import annotations

from typing import Any

from fumehood.core.json_values import canonical_json


def first_difference(expected: Any, actual: Any, path: str = "") -> str | None:
    """Return the path of the first difference and both values; None where the values are equal.

    Numbers are compared as written: 1, 1.0 and true differ. The order of keys does not matter.

    Args:
        expected: any JSON value.
        actual: any JSON value.
        path: of both values in an enclosing value.
    """
    if isinstance(expected, dict) and isinstance(actual, dict):
        return _difference_in_object(expected, actual, path)
    if isinstance(expected, list) and isinstance(actual, list):
        return _difference_in_list(expected, actual, path)
    if canonical_json(expected) == canonical_json(actual):
        return None
    return f"{path}: {_short(actual)}, expected {_short(expected)}"


def _difference_in_object(
    expected: dict[str, Any], actual: dict[str, Any], path: str
) -> str | None:
    for key in sorted(expected.keys() | actual.keys()):
        where = f"{path}.{key}" if path else key
        if key not in actual or key not in expected:
            return f"{where}: {'missing' if key not in actual else 'not expected'}"
        inner = first_difference(expected[key], actual[key], where)
        if inner is not None:
            return inner
    return None


def _difference_in_list(expected: list[Any], actual: list[Any], path: str) -> str | None:
    for index, (left, right) in enumerate(zip(expected, actual, strict=False)):
        inner = first_difference(left, right, f"{path}[{index}]")
        if inner is not None:
            return inner
    if len(expected) == len(actual):
        return None
    return f"{path}: {len(actual)} entries, expected {len(expected)}"


def _short(value: Any) -> str:
    text = canonical_json(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
