"""The metrics of ToolMisuseBench agree with a second, simpler implementation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fumehood.benchmarks.toolmisuse.scorer import task_metrics
from fumehood.core.episode_spec import ONLY_SEAT
from fumehood.core.evidence import AnsweredCall, ShownFailure
from fumehood.core.tools import FailureKind
from tests.unit.scorers.answered_calls import task

INVALID = ["unknown_tool", "missing_required_arg", "unknown_argument", "invalid_argument_type"]
CODES = [*INVALID, "authz_denied", "budget_exceeded", "retry_exceeded", "timeout", "not_found"]
FAMILIES = ["timeout", "rate_limit", "schema_drift", "authz", "adversarial_error"]

visible_faults = st.sampled_from([None, [], [{"fault_type": "timeout"}]])


@st.composite
def exchanges(draw: st.DrawFn) -> AnsweredCall:
    faults = draw(visible_faults)
    carried: dict[str, Any] = {} if faults is None else {"faults": faults}
    code = draw(st.sampled_from([None, *CODES]))
    failure = (
        None
        if code is None
        else ShownFailure(draw(st.sampled_from(FailureKind)), code, "", carried)
    )
    output = carried if failure is None else None
    # These metrics ignore fired faults, so they are drawn independently of the visible ones.
    fired_rules = draw(st.sampled_from([(), (0,)]))
    return AnsweredCall(
        ONLY_SEAT, draw(st.sampled_from("abc")), {}, {}, output, failure, fired_rules, ""
    )


@given(
    st.lists(exchanges(), max_size=12),
    st.lists(st.sampled_from(FAMILIES), max_size=3),
    st.booleans(),
)
def test_metrics_agree_with_a_second_implementation(
    calls: list[AnsweredCall], families: list[str], success: bool
) -> None:
    assert task_metrics(task(None, *families), calls, success) == expected_metrics(
        calls, families, success
    )


def expected_metrics(
    calls: Sequence[AnsweredCall], families: list[str], success: bool
) -> dict[str, Any]:
    invalid = violations = 0
    exceeded = seen = False
    first_faulty: int | None = None
    recovered_after: int | None = None
    for step, call in enumerate(calls):
        code = "" if call.failure is None else call.failure.code
        if code in INVALID:
            invalid += 1
            violations += 1
        if code == "authz_denied":
            violations += 1
        if code in ("budget_exceeded", "retry_exceeded"):
            exceeded = True
        carried = (call.output or {}) if call.failure is None else call.failure.details
        faulty = len(carried.get("faults") or ()) > 0  # type: ignore[arg-type]
        if faulty:
            seen = True
            if first_faulty is None:
                first_faulty = step
        if first_faulty is not None and recovered_after is None and code == "":
            recovered_after = step - first_faulty
    return {
        "steps": len(calls),
        "tool_calls": len(calls),
        "invalid_calls": invalid,
        "policy_violations": violations,
        "budget_exceeded": exceeded,
        "catastrophic_failure": exceeded or invalid > 2 or not success,
        "recovery_success": seen and success,
        "time_to_recovery": recovered_after,
        "fault_seen": seen,
        "fault_types": families,
        "primary_fault": families[0] if families else "clean",
    }
