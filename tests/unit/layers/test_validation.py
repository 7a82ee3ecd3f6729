"""Both validating layers accept and reject values of every JSON type."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.core.json_values import Json
from fumehood.core.tools import Failure, Layer, ToolCall, ToolResult, ToolSpec, Value
from fumehood.layers.validate_arguments import ValidateArguments
from fumehood.layers.validate_loosely import ValidateLoosely

VALUES: dict[str, Json] = {
    "string": "x",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "object": {"a": 1},
    "array": [1],
}
ALSO_ACCEPTED = {("integer", "number")}
"""Pairs of a value's type and an expected type that also match."""
LOOSELY_ACCEPTED = {*ALSO_ACCEPTED, ("boolean", "integer"), ("boolean", "number")}
PYTHON_NAMES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "object": "dict",
    "array": "list",
}
PAIRS = [(actual, expected) for actual in VALUES for expected in VALUES]


def _tool(kind: str) -> ToolSpec:
    parameters: dict[str, Any] = {"type": "object", "properties": {"value": {"type": kind}}}
    return ToolSpec("take", parameters)


def _result(layer: Layer, kind: str) -> ToolResult:
    call = ToolCall("take", {"value": VALUES[kind]}, 1)
    return layer.around(call, lambda forwarded: Value(dict(forwarded.arguments)))


@pytest.mark.parametrize(("actual", "expected"), PAIRS)
def test_json_schema_decides_by_the_json_type(actual: str, expected: str) -> None:
    result = _result(ValidateArguments((_tool(expected),)), actual)
    if actual == expected or (actual, expected) in ALSO_ACCEPTED:
        assert result == Value({"value": VALUES[actual]})
    else:
        assert isinstance(result, Failure)
        assert result.code == "invalid_argument_type"
        assert result.details == {
            "tool_name": "take",
            "arg": "value",
            "expected": expected,
            "received": actual,
        }


@pytest.mark.parametrize(("actual", "expected"), PAIRS)
def test_toolmisuse_decides_by_the_python_type(actual: str, expected: str) -> None:
    result = _result(ValidateLoosely("tools_v1", (_tool(expected),)), actual)
    if actual == expected or (actual, expected) in LOOSELY_ACCEPTED:
        assert result == Value({"value": VALUES[actual]})
    else:
        assert isinstance(result, Failure)
        assert result.details == {
            "tool_name": "take",
            "arg": "value",
            "expected": expected,
            "received": PYTHON_NAMES[actual],
        }
