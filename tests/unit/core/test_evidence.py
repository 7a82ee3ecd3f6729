"""Evidence is read from the events of a complete trace only."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.core.evidence import ShownFailure, read_evidence
from fumehood.core.outcome import Finished
from fumehood.core.tools import FailureKind
from tests.golden.replay import transcribed

CALL: dict[str, Any] = {
    "kind": "call",
    "seat": "agent",
    "number": 1,
    "tool": "get_account",
    "arguments": {"id": "a"},
    "state": "d1",
    "faults": [
        {"rule": 2, "family": "timeout"},
        {"rule": 0, "family": "authz", "code_before": "x"},
    ],
    "failure": {"kind": "fault", "code": "E", "message": "No.", "details": {"n": 1}},
}
CLOSED: dict[str, Any] = {"kind": "closed", "final_state": {"a": 1}, "fire_counts": [0, 3]}


def test_a_call_has_its_arguments_before_and_after_the_faults() -> None:
    altered = {**CALL, "arguments_after": {"ref": "a"}}
    one, other = read_evidence([CALL, altered, CLOSED]).calls
    assert (one.sent, one.arguments_after) == ({"id": "a"}, {"id": "a"})
    assert (other.sent, other.arguments_after) == ({"id": "a"}, {"ref": "a"})
    assert one.failure == ShownFailure(FailureKind.FAULT, "E", "No.", {"n": 1})
    assert (one.output, one.fired_rules, one.state_digest) == (None, (2, 0), "d1")
    assert transcribed(other) == {
        "tool_name": "get_account",
        "args": {"ref": "a"},
        "output": None,
        "error": {"code": "E", "message": "No.", "details": {"n": 1}},
    }


def test_a_call_states_how_many_replies_of_models_to_its_seat_precede_it() -> None:
    request = {"kind": "model_call", "seat": "agent", "status": 200}
    others = [{**request, "seat": "user"}, {**request, "status": 400}]
    events: list[dict[str, Any]] = [CALL, request, CALL, CALL, *others, request, CALL, CLOSED]
    evidence = read_evidence(events)
    assert [call.model_calls_before for call in evidence.calls] == [0, 1, 1, 2]
    assert evidence.model_replies == {"agent": 2, "user": 1}


def test_the_last_stated_confidence_of_each_seat_is_kept() -> None:
    stated: list[dict[str, Any]] = [
        {"kind": "confidence", "seat": seat, "confidence": confidence}
        for seat, confidence in (("agent", 0.5), ("user", 1), ("agent", 0.25))
    ]
    assert read_evidence([*stated, CLOSED]).confidences == {"user": 1.0, "agent": 0.25}


def test_ends_refusals_and_the_last_state_are_kept() -> None:
    ended = {"kind": "seat_ended", "seat": "agent", "end": {"outcome": "finished", "answer": "x"}}
    refused = {"kind": "refused", "seat": "agent", "refusal": "too_deep", "limit": 1, "actual": 2}
    events: list[dict[str, Any]] = [{"kind": "opened"}, refused, ended, CLOSED]
    evidence = read_evidence(events)
    assert evidence.ends == {"agent": Finished("x")}
    assert evidence.refusals == ("too_deep",)
    assert (evidence.final_state, evidence.fire_counts) == ({"a": 1}, (0, 3))


@pytest.mark.parametrize(
    "events",
    [
        [],
        [CALL],
        [{**CALL, "tool": None}, CLOSED],
        [{key: value for key, value in CALL.items() if key != "state"}, CLOSED],
        [{**CALL, "failure": {**CALL["failure"], "kind": "surprise"}}, CLOSED],
        [
            {
                "kind": "seat_ended",
                "seat": "agent",
                "end": {"outcome": "infra", "kind": "service", "detail": ""},
            },
            CLOSED,
        ],
        [{"kind": "seat_ended", "seat": "agent", "end": {"outcome": "won"}}, CLOSED],
    ],
)
def test_events_that_are_no_episode_are_refused(events: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_evidence(events)
