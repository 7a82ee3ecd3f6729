"""Names the first place where two JSON values differ."""

from __future__ import annotations

from typing import Any

from fumehood.core.json_values import canonical_json


def first_difference(expected: Any, actual: Any, path: str = "") -> str | None:
    """Return where and how ``actual`` first differs from ``expected``, or None where it does not.

    Numbers are compared as written: 1, 1.0 and true differ. The order of keys does not matter.
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
    for index, (one, other) in enumerate(zip(expected, actual, strict=False)):
        inner = first_difference(one, other, f"{path}[{index}]")
        if inner is not None:
            return inner
    if len(expected) == len(actual):
        return None
    return f"{path}: {len(actual)} entries, expected {len(expected)}"


def _short(value: Any) -> str:
    text = canonical_json(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
