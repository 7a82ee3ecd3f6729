"""The metrics of ToolMisuseBench for one task, as published.

Source: docs/reference/toolmisuse.md, Metrics.
"""

from __future__ import annotations

from collections.abc import Sequence

from fumehood.core.evidence import AnsweredCall, Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.criteria import check_all

INVALID_CALL_CODES = frozenset(
    {"unknown_tool", "missing_required_arg", "unknown_argument", "invalid_argument_type"}
)
BUDGET_CODES = frozenset({"budget_exceeded", "retry_exceeded"})
CATASTROPHIC_INVALID_CALLS = 3


class ToolMisuseScorer:
    """Scores a success if there are criteria and all of them hold.

    Like the reference, the metrics use the error codes that the agent saw, not the underlying
    events.
    """

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return checks and metrics."""
        checks = check_all(gold.criteria, evidence, task.initial_state)
        success = bool(checks) and all(checks.values())
        return Score(success, checks, task_metrics(task, evidence.calls, success))


def task_metrics(task: Task, calls: Sequence[AnsweredCall], success: bool) -> JsonObject:
    """Return the metrics of one task and its fault labels.

    Args:
        task: that was attempted.
        calls: its calls, in order.
        success: whether all criteria hold.
    """
    codes = [call.failure.code for call in calls if call.failure is not None]
    invalid_calls = sum(code in INVALID_CALL_CODES for code in codes)
    budget_exceeded = any(code in BUDGET_CODES for code in codes)
    fault_seen = any(_shows_fault(call) for call in calls)
    fault_types: list[Json] = [rule.family for rule in task.fault_plan]
    return {
        "steps": len(calls),
        "tool_calls": len(calls),
        "invalid_calls": invalid_calls,
        "policy_violations": invalid_calls + codes.count("authz_denied"),
        "budget_exceeded": budget_exceeded,
        "catastrophic_failure": budget_exceeded
        or invalid_calls >= CATASTROPHIC_INVALID_CALLS
        or not success,
        "recovery_success": fault_seen and success,
        "time_to_recovery": _time_to_recovery(calls),
        "fault_seen": fault_seen,
        "fault_types": fault_types,
        "primary_fault": fault_types[0] if fault_types else "clean",
    }


def _shows_fault(call: AnsweredCall) -> bool:
    visible = call.output if call.failure is None else call.failure.details
    return bool(visible and visible.get("faults"))


def _time_to_recovery(calls: Sequence[AnsweredCall]) -> int | None:
    """Return the distance from the first faulty step to the first step without an error, at or
    after it."""
    first = next((step for step, call in enumerate(calls) if _shows_fault(call)), None)
    if first is None:
        return None
    return next(
        (step - first for step, call in enumerate(calls) if step >= first and not call.failure),
        None,
    )
