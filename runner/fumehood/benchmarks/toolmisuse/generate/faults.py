"""The fault plans of generated tasks."""

from __future__ import annotations

from collections.abc import Sequence, Set

from fumehood.benchmarks.toolmisuse.records import FaultRecord, FaultType

RENAMES = {
    "close_account": ("id", "account_id"),
    "create_account": ("fields", "attributes"),
    "create_job": ("cron", "schedule"),
    "get_account": ("id", "account_id"),
    "get_doc": ("doc_id", "document_id"),
    "list_dir": ("path", "dir_path"),
    "read_file": ("path", "file_path"),
    "search_docs": ("query", "search_text"),
    "update_account": ("id", "account_id"),
    "validate_cron": ("cron", "schedule"),
}
"""Tool → renamed argument and its new name. Tools without arguments have no entry."""

_MISLEADING_MESSAGES = (
    "Record is archived.",
    "Internal error, do not retry.",
    "Tool was removed.",
    "Unexpected state.",
)

PERSISTENT: Set[FaultType] = frozenset({"authz", "rate_limit"})
"""Families that fire on every call in release 0.1; the paper reports no success with them."""

REWRITABLE: Set[FaultType] = frozenset({"timeout", "authz", "rate_limit"})
"""Families whose errors ``adversarial_error`` can rewrite. Errors of drift arise later, in the
validation."""


def plan_faults(
    families: Sequence[FaultType], tool_name: str, *, persistent: bool, goal_only: bool = False
) -> list[FaultRecord]:
    """Return a plan whose first fault is of the first family.

    Args:
        families: in the order of the plan, all different. A timeout is added to
        ``adversarial_error`` if
            no other family returns an error that it can rewrite.
        tool_name: tool of the call that reaches the goal.
        persistent: whether ``PERSISTENT`` families fire on every call (release 0.1).
        goal_only: whether faults fire on calls of ``tool_name`` only.

    Returns:
        Faults of which the first transient one fires on call 1, the second on call 2, and so on,
        so that repeating the call succeeds. ``adversarial_error`` fires together with the error
        that it rewrites.
    """
    if "adversarial_error" in families and REWRITABLE.isdisjoint(families):
        families = (*families, "timeout")
    persistent_families: Set[FaultType] = PERSISTENT if persistent else frozenset()
    transient = [
        family
        for family in families
        if family != "adversarial_error" and family not in persistent_families
    ]
    call_of: dict[FaultType, int] = {family: call for call, family in enumerate(transient, start=1)}
    rewritten = next((family for family in families if family in REWRITABLE), None)
    if rewritten is not None:
        call_of["adversarial_error"] = call_of.get(rewritten, 1)
    faults = [_fault(family, call_of.get(family), tool_name) for family in families]
    if goal_only:
        for fault in faults:
            fault.trigger["on_tool"] = tool_name
    return faults


def fires_on_every_call(fault: FaultRecord) -> bool:
    """Return whether this fault makes every call fail, or every call of one tool."""
    return fault.fault_type in PERSISTENT and fault.trigger.keys() <= {"on_tool"}


def _fault(family: FaultType, call: int | None, tool_name: str) -> FaultRecord:
    """Return a fault that fires on one call of the episode, or on every call if ``call`` is
    None."""
    is_transient = call is not None
    note = {"recoverability": "transient" if is_transient else "persistent"}
    return FaultRecord(
        fault_type=family,
        trigger={"on_nth_call": call} if is_transient else {},
        severity="soft" if is_transient else "hard",
        payload={**_payload(family, tool_name), **note},
    )


def _payload(family: FaultType, tool_name: str) -> dict[str, object]:
    match family:
        case "timeout":
            return {"timeout_ms": 50}
        case "rate_limit":
            return {"after_n_calls": 0, "retry_after_ms": 50}
        case "authz":
            return {"required_role": "admin"}
        case "schema_drift":
            old, new = RENAMES.get(tool_name, ("", ""))
            renames = {"rename_args": {old: new}} if old else {"add_required": {"format": "text"}}
            return {**renames, "visibility": "refusal_only"}
        case "adversarial_error":
            return {"messages": list(_MISLEADING_MESSAGES)}
