"""A gate with a token can be passed, and the tool behind it never sees the token."""

from __future__ import annotations

from typing import Any

from tests.unit.faults.native_seat import NativeDoor


def gate(**payload: Any) -> dict[str, Any]:
    return {"family": "authz", "payload": payload}


def test_a_gate_without_a_token_denies_and_says_which_role_is_needed() -> None:
    door = NativeDoor(gate(required_role="keeper"))
    assert door.refused("read_file", path="/a.txt") == ("authz_denied", {"required_role": "keeper"})


def test_a_gate_with_a_token_says_which_argument_it_looks_for_and_opens_to_it() -> None:
    door = NativeDoor(gate(required_role="keeper", required_token="T-1", token_field="badge"))
    denial = ("authz_denied", {"required_role": "keeper", "expected": ["badge"]})
    assert door.refused("read_file", path="/a.txt") == denial
    assert door.refused("read_file", path="/a.txt", badge="T-2") == denial
    assert door.answered("read_file", path="/a.txt", badge="T-1")["content"] == "x"


def test_the_tool_does_not_get_the_token() -> None:
    door = NativeDoor(gate(required_token="T-1"))
    door.answered("read_file", path="/a.txt", token="T-1")
    exchange = door.close().exchanges[0]
    assert exchange.sent == {"path": "/a.txt", "token": "T-1"}
    assert exchange.arguments_after == {"path": "/a.txt"}


def test_what_was_delivered_is_what_the_innermost_of_two_faults_passed_on() -> None:
    """Though the drift stands first in the plan, the gate is passed first."""
    drift = {"family": "schema_drift", "payload": {"rename_args": {"path": "location"}}}
    door = NativeDoor(drift, gate(required_token="T-1"))
    door.answered("read_file", location="/a.txt", token="T-1")
    assert door.close().exchanges[0].arguments_after == {"path": "/a.txt"}


def test_calls_that_the_trigger_does_not_mean_pass_without_a_token() -> None:
    door = NativeDoor({**gate(required_token="T-1"), "trigger": {"on_tool": "write_file"}})
    assert door.answered("read_file", path="/a.txt")
    assert door.refused("write_file", path="/a.txt", content="")[0] == "authz_denied"
