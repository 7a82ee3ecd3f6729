"""Decides what an agent sees of the faults that fired on its call."""

from __future__ import annotations

from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.tools import (
    Failure,
    FailureKind,
    FiredFault,
    FiredFaults,
    Forward,
    ToolCall,
    ToolResult,
    Value,
)


class HideFaults:
    """Removes the details of a failure that a fault rewrote; they reveal the original failure."""

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call, and remove the details of a rewritten failure."""
        result = forward(call)
        if isinstance(result, Failure) and any(
            fault.code_before is not None for fault in result.fired_faults
        ):
            return Failure(result.kind, result.code, result.message, {}, result.fired_faults)
        return result


class RevealFaults:
    """Adds the fired faults to each result (docs/reference/toolmisuse.md, Visibility).

    The agent under test can read this. It is a weakness of ToolMisuseBench, kept for comparability.
    """

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call and add its fired faults to the result."""
        result = forward(call)
        if not result.fired_faults:
            return result
        if isinstance(result, Value):
            return Value(
                {**result.output, "faults": _to_json(result.fired_faults)}, result.fired_faults
            )
        return _reveal_in_failure(result)


def _reveal_in_failure(failure: Failure) -> Failure:
    fired_faults = failure.fired_faults
    drifts = tuple(fault for fault in fired_faults if fault.arguments_after is not None)
    rewrites = tuple(fault for fault in fired_faults if fault.code_before is not None)
    others = tuple(
        fault
        for fault in fired_faults
        if fault.arguments_after is None and fault.code_before is None
    )
    # ToolMisuseBench adds rewriting faults twice, so equal traces need the same.
    doubled = rewrites + rewrites
    order = drifts + others + doubled if failure.kind is FailureKind.FAULT else doubled + drifts
    details: JsonObject = copy_object(failure.details)
    if rewrites:
        details["original_error_code"] = rewrites[-1].code_before
    details["faults"] = _to_json(order)
    return Failure(failure.kind, failure.code, failure.message, details, fired_faults)


def _to_json(fired_faults: FiredFaults) -> list[Json]:
    return [_fault(fault) for fault in fired_faults]


def _fault(fault: FiredFault) -> JsonObject:
    return {
        "fault_type": fault.family,
        "severity": fault.severity,
        "payload": copy_object(fault.payload),
    }
