"""Keeps from the agent which faults touched its call."""

from __future__ import annotations

from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.tools import (
    Failure,
    FailureKind,
    FiredFault,
    Forward,
    Story,
    ToolCall,
    ToolResult,
    Value,
)


class HideFaults:
    """Empties the details of a rewritten failure, which would give the true one away (spec part 11.3)."""

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call; a failure that lies, lies completely."""
        result = forward(call)
        if isinstance(result, Failure) and any(
            event.code_before is not None for event in result.story
        ):
            return Failure(result.kind, result.code, result.message, {}, result.story)
        return result


class RevealFaults:
    """Puts the story of a result into the result itself (spec parts 4.1, 4.5, 4.8).

    That an agent under test can read this is a weakness of the original, kept for comparison only.
    """

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call and tell its story in the reply."""
        result = forward(call)
        if not result.story:
            return result
        if isinstance(result, Value):
            return Value({**result.output, "faults": _told(result.story)}, result.story)
        return _disclose_failure(result)


def _disclose_failure(failure: Failure) -> Failure:
    story = failure.story
    drifts = tuple(event for event in story if event.delivered is not None)
    rewrites = tuple(event for event in story if event.code_before is not None)
    strikes = tuple(
        event for event in story if event.delivered is None and event.code_before is None
    )
    # The reference adds rewriting events twice; traces that are to be equal repeat that.
    doubled = rewrites + rewrites
    order = drifts + strikes + doubled if failure.kind is FailureKind.FAULT else doubled + drifts
    details: JsonObject = copy_object(failure.details)
    if rewrites:
        details["original_error_code"] = rewrites[-1].code_before
    details["faults"] = _told(order)
    return Failure(failure.kind, failure.code, failure.message, details, story)


def _told(story: Story) -> list[Json]:
    return [_event(event) for event in story]


def _event(event: FiredFault) -> JsonObject:
    return {
        "fault_type": event.family,
        "severity": event.severity,
        "payload": copy_object(event.payload),
    }
