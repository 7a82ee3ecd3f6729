"""The events of a trace, and the formats that depend on them."""

from __future__ import annotations

from typing import Any

from fumehood.core.conversation import Turn, TurnQueue
from fumehood.core.episode import Seat
from fumehood.core.episode_spec import DataMode
from fumehood.core.evidence import read_evidence
from fumehood.core.ledger import Budget, Ledger
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.tools import Failure, FailureKind, FiredFault, LayeredToolset, ToolCall, Value
from fumehood.core.trace import CallMade
from fumehood.worlds.files import Files

CALL = ToolCall("read_file", {"path": "/a"}, 1)


def test_a_fired_fault_has_the_code_before_only_if_it_rewrote_one() -> None:
    fired = (
        FiredFault(0, "timeout", "soft", {}),
        FiredFault(1, "adversarial_error", "soft", {}, code_before="timeout"),
    )
    failure = Failure(FailureKind.FAULT, "E1", "No.", {}, fired)
    assert CallMade("agent", CALL, failure, "d").to_json()["faults"] == [
        {"rule": 0, "family": "timeout"},
        {"rule": 1, "family": "adversarial_error", "code_before": "timeout"},
    ]


def test_the_arguments_after_faults_are_recorded_only_if_a_fault_changed_them() -> None:
    changed = Value({}, (FiredFault(0, "authz", "soft", {}, arguments_after={"path": "/b"}),))
    assert "arguments_after" not in CallMade("agent", CALL, Value({}), "d").to_json()
    event = CallMade("agent", CALL, changed, "d").to_json()
    assert (event["arguments"], event["arguments_after"]) == ({"path": "/a"}, {"path": "/b"})


def test_the_data_modes_have_these_names() -> None:
    assert {mode.value for mode in DataMode} == {"offline", "live", "record", "replay"}


def test_values_of_a_wrong_type_are_left_out_of_the_evidence() -> None:
    call: dict[str, Any] = {
        "kind": "call",
        "seat": "agent",
        "tool": "t",
        "arguments": {"a": 1},
        "arguments_after": "text",
        "state": "d",
        "faults": [{"rule": 0}, {"rule": "1"}, "fault"],
        "output": [],
    }
    closed: dict[str, Any] = {"kind": "closed", "final_state": {}, "fire_counts": [1, "2"]}
    evidence = read_evidence([call, closed])
    (answered,) = evidence.calls
    assert (answered.sent, answered.arguments_after) == ({"a": 1}, {"a": 1})
    assert (answered.fired_rules, answered.output, answered.failure) == ((0,), None, None)
    assert evidence.fire_counts == (1,)


def test_a_tool_of_a_later_turn_is_hidden_until_that_turn() -> None:
    turns = TurnQueue("Read.", (Turn("Write.", ("write_file",)),))
    tools = LayeredToolset(Files({"files": {}}), [])
    seat = Seat("agent", turns, tools, Ledger(Budget()), MemoryRecorder())
    assert [tool.name for tool in seat.list_tools()] == ["read_file", "list_dir"]
    seat.answer("done")
    assert [tool.name for tool in seat.list_tools()] == ["read_file", "write_file", "list_dir"]


def test_the_kinds_of_failures_have_fixed_names_in_a_trace() -> None:
    names = ["invalid_call", "world", "fault", "reply_lost", "refused", "withheld", "out_of_budget"]
    assert [kind.value for kind in FailureKind] == names
