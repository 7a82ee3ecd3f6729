"""What goes wrong in a generated task, and how it is told to whoever studies the results."""

from __future__ import annotations

from collections.abc import Sequence, Set

from fumehood.benchmarks.toolmisuse.record import FaultRecord, FaultType

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
"""Tool → the argument that drift renames, and what it becomes; a tool without arguments has none."""

_LIES = (
    "Record is archived.",
    "Internal error, do not retry.",
    "Tool was removed.",
    "Unexpected state.",
)

PERSISTENT: Set[FaultType] = frozenset({"authz", "rate_limit"})
"""Families that strike every call in release 0.1, where the paper reports no success under them."""


REWRITABLE: Set[FaultType] = frozenset({"timeout", "authz", "rate_limit"})
"""Families whose refusals rewriting sees; those of drift come from validation, which it does not see."""


def plan_faults(
    families: Sequence[FaultType], tool_name: str, *, persistent: bool
) -> list[FaultRecord]:
    """Return a plan whose first fault is of the first family.

    Args:
        families: in the order of the plan, all different. Rewriting needs something to rewrite, so a
            timeout comes with it where nothing else gives it that.
        tool_name: of the call that would do it.
        persistent: whether the families that can be are there for good (release 0.1) or pass.

    Returns:
        Faults of which the first that passes strikes call 1, the second call 2, and so on, so that sending
        the same call again is enough; rewriting strikes where its refusal is.
    """
    if "adversarial_error" in families and REWRITABLE.isdisjoint(families):
        families = (*families, "timeout")
    for_good: Set[FaultType] = PERSISTENT if persistent else frozenset()
    passing = [
        family for family in families if family != "adversarial_error" and family not in for_good
    ]
    call_of: dict[FaultType, int] = {family: call for call, family in enumerate(passing, start=1)}
    refusing = next((family for family in families if family in REWRITABLE), None)
    if refusing is not None:
        call_of["adversarial_error"] = call_of.get(refusing, 1)
    return [_fault(family, call_of.get(family), tool_name) for family in families]


def strikes_every_call(fault: FaultRecord) -> bool:
    """Tell whether no call can ever pass this fault."""
    return fault.fault_type in PERSISTENT and fault.trigger == {}


def _fault(family: FaultType, call: int | None, tool_name: str) -> FaultRecord:
    """Return a fault at one call of the episode, or at every call where ``call`` is None."""
    passes = call is not None
    note = {"recoverability": "transient" if passes else "persistent"}
    return FaultRecord(
        fault_type=family,
        trigger={"on_nth_call": call} if passes else {},
        severity="soft" if passes else "hard",
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
            return {"messages": list(_LIES)}
