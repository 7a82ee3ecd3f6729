"""A drifted interface can be learnt from its refusals, and from them alone."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.core.errors import SpecError
from fumehood.core.fault_plan import FaultRule
from fumehood.core.tools import ToolSpec
from fumehood.layers.faults.schema_drift import SchemaDrift
from tests.unit.faults.native_seat import NativeSeat


def drift(**payload: Any) -> dict[str, Any]:
    return {"family": "schema_drift", "payload": payload}


def test_a_call_with_the_old_name_fails_and_the_error_gives_the_new_name() -> None:
    seat = NativeSeat(drift(rename_args={"path": "location"}))
    code, details = seat.refused("read_file", path="/a.txt")
    assert code == "unknown_argument"
    assert details == {"unknown": ["path"], "expected": ["location"], "tool_name": "read_file"}
    assert seat.answered("read_file", location="/a.txt")["content"] == "x"


def test_the_trace_contains_the_arguments_before_and_after_a_fault() -> None:
    seat = NativeSeat(drift(rename_args={"path": "location"}))
    seat.answered("read_file", location="/a.txt")
    evidence = seat.close()
    assert evidence.calls[0].sent == {"location": "/a.txt"}
    assert evidence.calls[0].arguments_after == {"path": "/a.txt"}
    assert evidence.fire_counts == (1,)


def test_a_missing_argument_is_called_by_its_new_name() -> None:
    seat = NativeSeat(drift(rename_args={"path": "location"}))
    code, details = seat.refused("read_file")
    assert (code, details["missing"]) == ("missing_required_arg", ["location"])


def test_an_error_uses_the_new_argument_name() -> None:
    seat = NativeSeat(drift(rename_args={"path": "location"}))
    code, details = seat.refused("read_file", location=3)
    assert (code, details["arg"]) == ("invalid_argument_type", "location")


def test_the_error_requests_an_additional_argument_with_its_type() -> None:
    seat = NativeSeat(drift(add_required={"owner": "text", "count": 1}))
    code, details = seat.refused("read_file", path="/a.txt")
    assert code == "missing_required_arg"
    assert details["missing"] == ["owner", "count"]
    assert details["types"] == {"owner": "string", "count": "integer"}
    code, details = seat.refused("read_file", path="/a.txt", owner="me", count="3")
    assert code == "invalid_argument_type"
    assert (details["arg"], details["expected"], details["received"]) == (
        "count",
        "integer",
        "string",
    )
    assert seat.answered("read_file", path="/a.txt", owner="me", count=3)


def test_a_whole_number_is_a_number() -> None:
    seat = NativeSeat(drift(add_required={"share": 0.5}))
    assert seat.answered("read_file", path="/a.txt", share=1)
    assert seat.refused("read_file", path="/a.txt", share=True)[1]["received"] == "boolean"


def test_an_error_of_a_retyped_argument_uses_json_types() -> None:
    seat = NativeSeat(drift(type_changes={"path": "integer"}))
    _, details = seat.refused("read_file", path="/a.txt")
    assert (details["expected"], details["received"]) == ("integer", "string")


def test_a_retyped_argument_reaches_the_tool_with_its_published_type() -> None:
    seat = NativeSeat(drift(type_changes={"path": "integer"}))
    assert seat.refused("read_file", path=5)[0] == "not_found"
    assert seat.close().calls[0].arguments_after == {"path": "5"}


def test_a_contradiction_names_the_argument_after_renaming() -> None:
    with pytest.raises(SpecError, match="is called 'x' after renaming"):
        NativeSeat(drift(rename_args={"path": "x"}, type_changes={"path": "integer"}))


def test_a_rewritten_failure_does_not_reveal_the_new_name() -> None:
    lie = {"family": "adversarial_error", "payload": {"code": "broken", "message": "Broken."}}
    seat = NativeSeat(drift(rename_args={"path": "location"}), lie)
    assert seat.refused("read_file", path="/a.txt") == ("broken", {})


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"rename_args": {"path": "content", "content": "path"}}, "rename_args.path"),
        ({"rename_args": {"path": "x", "content": "x"}}, "rename_args.content"),
        ({"rename_args": {"path": 3}}, "rename_args.path"),
        ({"rename_args": {"path": "x"}, "add_required": {"path": ""}}, "add_required.path"),
        ({"rename_args": {"path": "x"}, "add_required": {"x": ""}}, "add_required.x"),
        ({"rename_args": {"path": "x"}, "type_changes": {"path": "integer"}}, "type_changes.path"),
        ({"type_changes": {"path": "number"}}, "type_changes.path"),
    ],
)
def test_a_contradictory_drift_is_rejected_when_the_episode_opens(
    payload: dict[str, Any], field: str
) -> None:
    with pytest.raises(SpecError) as refusal:
        NativeSeat(drift(**payload))
    assert refusal.value.field == f"fault_plan[0].payload.{field}"


@pytest.mark.parametrize(
    "payload",
    [
        {"rename_args": {"path": "location"}},
        {"type_changes": {"path": "integer"}},
        {"add_required": {"token": ""}},
        {},
    ],
)
def test_only_a_drift_that_changes_nothing_is_rejected_for_the_tools_of_a_task(
    payload: dict[str, Any],
) -> None:
    rule = FaultRule(0, "schema_drift", {}, "soft", payload)
    tool = ToolSpec("read_file", {"properties": {"path": {"type": "string"}}})
    if payload:
        SchemaDrift.check_tools(rule, [tool])
    else:
        with pytest.raises(SpecError, match="changes nothing"):
            SchemaDrift.check_tools(rule, [tool])
