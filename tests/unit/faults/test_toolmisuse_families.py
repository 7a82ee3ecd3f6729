"""The fault families that ToolMisuseBench defines differently change exactly what they name."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.core.errors import SpecError
from fumehood.core.fault_plan import FaultRule
from fumehood.core.tools import Failure, ToolCall, ToolResult, Value
from fumehood.layers.faults.family import BoundFault, FaultFamily, Trigger
from fumehood.layers.faults.toolmisuse import ToolMisuseAuthz, ToolMisuseSchemaDrift


class NoDraws:
    """A random source that no fault without a probability needs."""

    def draw(self, rule: int, call: ToolCall, purpose: str) -> float:
        raise AssertionError("a number was drawn")


def bound(family: str, **payload: Any) -> BoundFault:
    rule = FaultRule(2, family, payload=payload)
    return BoundFault(rule, Trigger.of(rule), NoDraws())


def result_of(layer: FaultFamily, **arguments: Any) -> ToolResult:
    """Call a tool that answers with its arguments, in their order."""
    call = ToolCall("take", arguments, 1)
    return layer.around(call, lambda changed: Value(dict(changed.arguments)))


def drifted(payload: dict[str, Any], **arguments: Any) -> list[tuple[str, Any]]:
    result = result_of(ToolMisuseSchemaDrift(bound("schema_drift", **payload)), **arguments)
    assert isinstance(result, Value)
    (fired,) = result.fired_faults
    assert fired.arguments_after == result.output
    return list(result.output.items())


def test_a_renamed_argument_moves_to_the_end_and_replaces_its_namesake() -> None:
    renames = {"rename_args": {"a": "b"}}
    assert drifted(renames, a=1, b=2, c=3) == [("c", 3), ("b", 1)]
    assert drifted(renames, c=3) == [("c", 3)]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("string", 5, "5"),
        ("integer", "5", 5),
        ("integer", "five", "five"),
        ("integer", None, None),
        ("integer", float("inf"), float("inf")),
        ("number", "5", "5"),
    ],
)
def test_a_value_is_cast_if_it_can_be(kind: str, value: Any, expected: Any) -> None:
    assert drifted({"type_changes": {"a": kind}}, a=value) == [("a", expected)]
    assert drifted({"type_changes": {"other": kind}}, a=value) == [("a", value)]


def test_types_change_by_the_new_names() -> None:
    payload = {"rename_args": {"a": "b"}, "type_changes": {"b": "string"}}
    assert drifted(payload, a=1) == [("b", "1")]


def test_an_argument_is_added_only_where_it_is_absent() -> None:
    addition = {"add_required": {"a": [1]}}
    assert drifted(addition, b=1) == [("b", 1), ("a", [1])]
    assert drifted(addition, a=2) == [("a", 2)]


def test_a_new_name_must_be_text() -> None:
    with pytest.raises(SpecError) as error:
        ToolMisuseSchemaDrift(bound("schema_drift", rename_args={"a": 3}))
    assert error.value.field == "fault_plan[2].payload.rename_args.a"


@pytest.mark.parametrize(
    ("payload", "arguments", "is_admitted"),
    [
        ({}, {}, False),
        ({"deny": False}, {}, True),
        ({"deny": None}, {}, True),
        ({"required_token": "t"}, {"token": "t"}, True),
        ({"required_token": "t"}, {"token": "u"}, False),
        ({"required_token": "t", "deny": False}, {}, False),
        ({"required_token": "t", "token_field": "key"}, {"key": "t"}, True),
        ({"required_token": "t", "token_field": "key"}, {"token": "t"}, False),
    ],
)
def test_a_token_or_the_plan_admits_a_call(
    payload: dict[str, Any], arguments: dict[str, Any], is_admitted: bool
) -> None:
    result = result_of(
        ToolMisuseAuthz(bound("authz", required_role="admin", **payload)), **arguments
    )
    assert isinstance(result, Value) is is_admitted
    if isinstance(result, Failure):
        assert (result.code, result.details) == ("authz_denied", {"required_role": "admin"})
        assert [fired.rule for fired in result.fired_faults] == [2]
