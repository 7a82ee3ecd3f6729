"""Keeps from the agent which faults touched its call."""

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
    """Empties the details of a rewritten failure, which would give the true one away."""

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call; a failure that lies, lies completely."""
        result = forward(call)
        if isinstance(result, Failure) and any(
            event.code_before is not None for event in result.fired_faults
        ):
            return Failure(result.kind, result.code, result.message, {}, result.fired_faults)
        return result


class RevealFaults:
    """Puts the fired_faults of a result into the result itself (docs/reference/toolmisuse.md, Visibility).

    That an agent under test can read this is a weakness of the original, kept for comparison only.
    """

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call and tell its fired_faults in the reply."""
        result = forward(call)
        if not result.fired_faults:
            return result
        if isinstance(result, Value):
            return Value(
                {**result.output, "faults": _told(result.fired_faults)}, result.fired_faults
            )
        return _disclose_failure(result)


def _disclose_failure(failure: Failure) -> Failure:
    fired_faults = failure.fired_faults
    drifts = tuple(event for event in fired_faults if event.arguments_after is not None)
    rewrites = tuple(event for event in fired_faults if event.code_before is not None)
    fired_rules = tuple(
        event
        for event in fired_faults
        if event.arguments_after is None and event.code_before is None
    )
    # The reference adds rewriting events twice; traces that are to be equal repeat that.
    doubled = rewrites + rewrites
    order = (
        drifts + fired_rules + doubled if failure.kind is FailureKind.FAULT else doubled + drifts
    )
    details: JsonObject = copy_object(failure.details)
    if rewrites:
        details["original_error_code"] = rewrites[-1].code_before
    details["faults"] = _told(order)
    return Failure(failure.kind, failure.code, failure.message, details, fired_faults)


def _told(fired_faults: FiredFaults) -> list[Json]:
    return [_event(event) for event in fired_faults]


def _event(event: FiredFault) -> JsonObject:
    return {
        "fault_type": event.family,
        "severity": event.severity,
        "payload": copy_object(event.payload),
    }
