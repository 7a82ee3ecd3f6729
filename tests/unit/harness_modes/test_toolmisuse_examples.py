"""The worked examples of the ToolMisuseBench specification (part 4.9), call by call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fumehood.core.clock import StoppedClock
from fumehood.core.evidence import AnsweredCall, read_evidence
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.harness_modes.toolmisuse import ToolMisuse
from tests.parts.specs import ACCOUNTS, episode_spec

Call = tuple[str, dict[str, Any]]
UPDATE: Call = ("update_account", {"id": "ax1", "patch": {"tier": "pro"}})
ON_FIRST = {"on_nth_call": 1}


def played(
    moves: list[Call],
    *faults: Mapping[str, Any],
    world: str = "crud",
    state: Mapping[str, Any] = ACCOUNTS,
    seed: int = 1,
    steps: int = 6,
    calls: int = 6,
    retries: int = 2,
) -> list[AnsweredCall]:
    """Return what came of the moves."""
    budget: dict[str, Any] = {"steps": steps, "calls": calls, "retries": retries}
    spec = episode_spec(
        *faults, world=world, harness_mode="toolmisuse", state=state, seed=seed, **budget
    )
    recorder = MemoryRecorder()
    episode = ToolMisuse().open_episode(spec, recorder, StoppedClock())
    for tool, arguments in moves:
        episode.seats[0].call(tool, arguments)
    episode.close()
    return list(read_evidence(recorder.written()).calls)


def codes(calls: list[AnsweredCall]) -> list[str]:
    return ["ok" if call.failure is None else call.failure.code for call in calls]


def details(call: AnsweredCall) -> dict[str, Any]:
    assert call.failure is not None
    return dict(call.failure.details)


def shown(fault: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fault as the agent sees it."""
    return {
        "fault_type": fault["family"],
        "severity": fault.get("severity", "soft"),
        "payload": fault.get("payload", {}),
    }


def test_1_a_timeout_fires_once() -> None:
    timeout = {"family": "timeout", "trigger": ON_FIRST, "payload": {"timeout_ms": 50}}
    first, second = played([UPDATE, UPDATE], timeout)
    assert codes([first, second]) == ["timeout", "ok"]
    assert details(first) == {"timeout_ms": 50, "faults": [shown(timeout)]}


def test_2_without_retries_the_first_failure_ends_the_episode_and_hides_its_fault() -> None:
    timeout = {"family": "timeout", "trigger": ON_FIRST, "payload": {"timeout_ms": 50}}
    (only,) = played([UPDATE], timeout, retries=0)
    assert codes([only]) == ["retry_exceeded"]
    assert details(only) == {"max_retries": 0, "original_error_code": "timeout"}


def test_3_a_drift_renames_a_sent_argument() -> None:
    drift = {
        "family": "schema_drift",
        "trigger": ON_FIRST,
        "payload": {"rename_args": {"id": "account_id"}},
    }
    first, second = played([UPDATE, UPDATE], drift)
    assert codes([first, second]) == ["missing_required_arg", "ok"]
    assert details(first) == {
        "missing": ["id"],
        "tool_name": "update_account",
        "faults": [shown(drift)],
    }
    assert first.arguments_after == {"patch": {"tier": "pro"}, "account_id": "ax1"}
    assert first.sent == UPDATE[1]


def test_4_an_error_of_a_fault_lists_faults_in_the_order_of_the_reference() -> None:
    authz = {"family": "authz", "trigger": {"on_tool": "update_account"}}
    drift = {"family": "schema_drift", "payload": {"add_required": {"zz": 1}}}
    lie = {"family": "adversarial_error", "payload": {"code": "E1"}}
    (only,) = played([UPDATE], authz, drift, lie)
    assert codes([only]) == ["E1"]
    assert details(only) == {
        "required_role": None,
        "original_error_code": "authz_denied",
        "faults": [shown(drift), shown(authz), shown(lie), shown(lie)],
    }


def test_5_a_rewritten_failure_lists_faults_in_the_order_of_the_reference() -> None:
    drift = {"family": "schema_drift", "payload": {"rename_args": {"absent": "x"}}}
    lie = {"family": "adversarial_error"}
    first, second = played([("get_account", {"id": "nope"}), UPDATE], drift, lie)
    assert codes([first, second]) == ["not_found", "ok"]
    assert details(first)["faults"] == [shown(lie), shown(lie), shown(drift)]
    assert second.output is not None
    assert second.output["faults"] == [shown(drift)]


def test_6_a_validation_error_is_never_rewritten() -> None:
    lie = {"family": "adversarial_error", "payload": {"code": "E1"}}
    (only,) = played([("get_account", {})], lie)
    assert codes([only]) == ["missing_required_arg"]
    assert details(only) == {"missing": ["id"], "tool_name": "get_account"}


def test_7_draws_follow_the_stream_of_the_reference() -> None:
    timeout = {"family": "timeout", "trigger": {"prob": 0.2}}
    made = played(
        [("list_jobs", {})] * 4, timeout, world="scheduling", state={}, seed=42, retries=9
    )
    assert codes(made) == ["ok", "timeout", "timeout", "timeout"]


def test_8_a_rate_limit_applies_from_its_call_on() -> None:
    limit = {"family": "rate_limit", "payload": {"after_n_calls": 1}}
    made = played([UPDATE] * 3, limit)
    assert codes(made) == ["ok", "rate_limited", "rate_limited"]
    assert details(made[1]) == {"retry_after_ms": 250, "faults": [shown(limit)]}


def test_9_the_call_beyond_the_limit_is_recorded_too() -> None:
    made = played([UPDATE] * 3, steps=9, calls=2)
    assert codes(made) == ["ok", "ok", "budget_exceeded"]


def test_10_a_retyped_argument_is_rejected_and_true_passes_as_an_integer() -> None:
    drift = {
        "family": "schema_drift",
        "trigger": ON_FIRST,
        "payload": {"type_changes": {"top_k": "string"}},
    }
    moves = [("search_docs", {"query": "x", "top_k": top_k}) for top_k in (1, True)]
    first, second = played(moves, drift, world="retrieval", state={"docs": []})
    assert codes([first, second]) == ["invalid_argument_type", "ok"]
    about = {"arg": "top_k", "expected": "integer", "received": "str", "tool_name": "search_docs"}
    assert details(first) == {**about, "faults": [shown(drift)]}


def test_11_a_token_passes_authz_and_the_tool_rejects_it_as_unknown() -> None:
    authz = {"family": "authz", "payload": {"required_token": "T"}}
    tool, arguments = UPDATE
    made = played([UPDATE, (tool, {**arguments, "token": "T"})], authz)
    assert codes(made) == ["authz_denied", "unknown_argument"]
    assert details(made[1]) == {"unknown": ["token"], "tool_name": "update_account"}


def test_12_a_rewriting_fault_draws_once_to_fire_and_once_for_its_message() -> None:
    lie = {
        "family": "adversarial_error",
        "trigger": {"prob": {"p": 1, "seed": 7}},
        "payload": {"messages": ["a", "b", "c"]},
    }
    made = played([("get_account", {"id": "nope"})] * 4, lie, retries=9)
    assert [call.failure.message for call in made if call.failure] == ["c", "c", "a", "b"]


def test_authz_precedes_rate_limit_and_rate_limit_precedes_timeout_in_any_plan() -> None:
    families = ("timeout", "rate_limit", "authz")
    plan = [
        {"family": family, "trigger": {"on_nth_call": number}}
        for family in families
        for number in (1, 2)
    ]
    plan.append({"family": "timeout", "trigger": {"on_nth_call": 3}})
    plan.append({"family": "rate_limit", "trigger": {"on_nth_call": 3}})
    made = played([UPDATE] * 3, *plan, retries=9)
    assert codes(made) == ["authz_denied", "authz_denied", "rate_limited"]
    assert [call.fired_rules for call in made] == [(4,), (5,), (7,)]


def test_rewriting_faults_apply_in_plan_order() -> None:
    liars = [{"family": "adversarial_error", "payload": {"code": code}} for code in ("E1", "E2")]
    (only,) = played([("get_account", {"id": "nope"})], *liars)
    assert codes([only]) == ["E2"]
    assert details(only)["original_error_code"] == "E1"
    assert details(only)["faults"] == [shown(liar) for liar in (*liars, *liars)]


def test_a_renamed_argument_moves_to_the_end_and_replaces_an_existing_one() -> None:
    drift = {"family": "schema_drift", "payload": {"rename_args": {"b": "a"}}}
    (only,) = played([("get_account", {"id": "ax1", "a": 1, "b": 2, "c": 3})], drift)
    assert details(only)["unknown"] == ["c", "a"]
    assert only.arguments_after == {"id": "ax1", "c": 3, "a": 2}
