"""Both validating layers accept and reject values of every JSON type."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.core.conversation import Turn, TurnQueue
from fumehood.core.json_values import Json
from fumehood.core.tools import (
    Failure,
    FailureKind,
    Layer,
    ToolCall,
    ToolResult,
    ToolSpec,
    Value,
)
from fumehood.layers.validate_arguments import RestrictTools, ValidateArguments
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


def _closed_tool() -> ToolSpec:
    properties: dict[str, Any] = {"value": {"type": "string"}}
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": ["value"],
        "additionalProperties": False,
    }
    return ToolSpec("take", parameters)


FORWARDED = Value({"forwarded": True})
STRICT = ValidateArguments((_closed_tool(),))
LOOSE = ValidateLoosely("tools_v1", (_closed_tool(),))


@pytest.mark.parametrize("layer", [STRICT, LOOSE])
@pytest.mark.parametrize(
    ("arguments", "code", "details"),
    [
        ({"other": 1}, "missing_required_arg", {"missing": ["value"], "tool_name": "take"}),
        (
            {"value": "x", "other": 1},
            "unknown_argument",
            {"unknown": ["other"], "tool_name": "take"},
        ),
    ],
)
def test_both_layers_name_what_is_missing_and_what_is_unknown(
    layer: Layer, arguments: dict[str, Json], code: str, details: dict[str, Json]
) -> None:
    result = layer.around(ToolCall("take", arguments, 1), lambda _: FORWARDED)
    assert isinstance(result, Failure)
    assert (result.kind, result.code) == (FailureKind.INVALID_CALL, code)
    assert result.details == details


def test_both_layers_reject_an_unknown_tool() -> None:
    call = ToolCall("give", {}, 1)
    strict = STRICT.around(call, lambda _: FORWARDED)
    assert isinstance(strict, Failure)
    assert strict.details == {"tool_name": "give", "available": ["take"]}
    loose = LOOSE.around(call, lambda _: FORWARDED)
    assert isinstance(loose, Failure)
    assert loose.details == {"toolset_id": "tools_v1", "tool_name": "give"}
    assert strict.code == loose.code == "unknown_tool"


def test_the_loose_layer_forwards_unknown_arguments_of_an_open_tool() -> None:
    call = ToolCall("take", {"value": "x", "other": 1}, 1)
    layer = ValidateLoosely("tools_v1", (_tool("string"),))
    assert layer.around(call, lambda _: FORWARDED) == FORWARDED


@pytest.mark.parametrize(("early", "forwarded"), [(False, {"now"}), (True, {"now", "later"})])
def test_a_hidden_tool_is_called_early_only_if_that_is_permitted(
    early: bool, forwarded: set[str]
) -> None:
    tools = tuple(ToolSpec(name, {"type": "object"}) for name in ("now", "later", "foreign"))
    turns = TurnQueue("a", (Turn("b", ("later",)),), frozenset({"foreign"}))
    layer = RestrictTools(tools, turns, early=early)
    for name in ("now", "later", "foreign"):
        result = layer.around(ToolCall(name, {}, 1), lambda _: FORWARDED)
        if name in forwarded:
            assert result == FORWARDED
        else:
            assert isinstance(result, Failure)
            assert result.details == {"tool_name": name, "available": ["now"]}
