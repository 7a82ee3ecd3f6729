"""Keeps from the agent which faults touched its call."""

from __future__ import annotations

from fumehood.core.tools import Failure, Forward, ToolCall, ToolResult


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
