"""A gate with a token can be passed, and the tool behind it never sees the token."""

from __future__ import annotations

from typing import Any

from tests.unit.faults.native_seat import NativeSeat


def gate(**payload: Any) -> dict[str, Any]:
    return {"family": "authz", "payload": payload}


def test_a_rule_without_a_token_denies_and_names_the_required_role() -> None:
    seat = NativeSeat(gate(required_role="keeper"))
    assert seat.refused("read_file", path="/a.txt") == ("authz_denied", {"required_role": "keeper"})


def test_a_rule_with_a_token_names_its_argument_and_accepts_it() -> None:
    seat = NativeSeat(gate(required_role="keeper", required_token="T-1", token_field="badge"))
    denial = ("authz_denied", {"required_role": "keeper", "expected": ["badge"]})
    assert seat.refused("read_file", path="/a.txt") == denial
    assert seat.refused("read_file", path="/a.txt", badge="T-2") == denial
    assert seat.answered("read_file", path="/a.txt", badge="T-1")["content"] == "x"


def test_the_tool_does_not_get_the_token() -> None:
    seat = NativeSeat(gate(required_token="T-1"))
    seat.answered("read_file", path="/a.txt", token="T-1")
    call = seat.close().calls[0]
    assert call.sent == {"path": "/a.txt", "token": "T-1"}
    assert call.arguments_after == {"path": "/a.txt"}


def test_the_arguments_after_two_faults_are_those_of_the_inner_one() -> None:
    """The call passes authz first, although the drift is first in the plan."""
    drift = {"family": "schema_drift", "payload": {"rename_args": {"path": "location"}}}
    seat = NativeSeat(drift, gate(required_token="T-1"))
    seat.answered("read_file", location="/a.txt", token="T-1")
    assert seat.close().calls[0].arguments_after == {"path": "/a.txt"}


def test_calls_outside_the_trigger_pass_without_a_token() -> None:
    seat = NativeSeat({**gate(required_token="T-1"), "trigger": {"on_tool": "write_file"}})
    assert seat.answered("read_file", path="/a.txt")
    assert seat.refused("write_file", path="/a.txt", content="")[0] == "authz_denied"
