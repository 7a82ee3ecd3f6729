"""The metrics that native and ToolMisuseBench tasks share.

Source: docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fumehood.core.json_values import Json, JsonObject

CATASTROPHIC_INVALID_CALLS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCounts:
    """The facts of one episode from which the metrics are computed."""

    calls: int
    invalid_calls: int
    denied_calls: int
    budget_exceeded: bool
    """Whether a call exceeded the budget, or a failure used the last retry."""
    fault_seen: bool
    """Whether a fault fired on a call."""
    time_to_recovery: int | None
    """Number of calls from the first fault to the recovery; None without one."""
    planned_families: Sequence[str]
    """Family of each planned fault, in the order of the plan."""


def call_metrics(counts: CallCounts, success: bool) -> JsonObject:
    """Return the metrics, named as in ToolMisuseBench."""
    fault_types: list[Json] = [*counts.planned_families]
    return {
        "steps": counts.calls,
        "tool_calls": counts.calls,
        "invalid_calls": counts.invalid_calls,
        "policy_violations": counts.invalid_calls + counts.denied_calls,
        "budget_exceeded": counts.budget_exceeded,
        "catastrophic_failure": counts.budget_exceeded
        or counts.invalid_calls >= CATASTROPHIC_INVALID_CALLS
        or not success,
        "recovery_success": counts.fault_seen and success,
        "time_to_recovery": counts.time_to_recovery,
        "fault_seen": counts.fault_seen,
        "fault_types": fault_types,
        "primary_fault": fault_types[0] if fault_types else "clean",
    }
