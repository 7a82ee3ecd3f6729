"""The metrics of ToolMisuseBench for one task, as published.

Source: docs/reference/toolmisuse.md, Metrics.
"""

from __future__ import annotations

from collections.abc import Sequence

from fumehood.core.evidence import AnsweredCall, Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.call_metrics import CallCounts, call_metrics
from fumehood.scorers.criteria import check_all

INVALID_CALL_CODES = frozenset(
    {"unknown_tool", "missing_required_arg", "unknown_argument", "invalid_argument_type"}
)
BUDGET_CODES = frozenset({"budget_exceeded", "retry_exceeded"})


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
    counts = CallCounts(
        calls=len(calls),
        invalid_calls=sum(code in INVALID_CALL_CODES for code in codes),
        denied_calls=codes.count("authz_denied"),
        budget_exceeded=any(code in BUDGET_CODES for code in codes),
        fault_seen=any(_shows_fault(call) for call in calls),
        time_to_recovery=_time_to_recovery(calls),
        planned_families=[rule.family for rule in task.fault_plan],
    )
    return call_metrics(counts, success)


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
