"""A call that is never answered: the tool does not see it and nothing has changed."""

from __future__ import annotations

from fumehood.core.tools import Failure, FailureKind, Forward, ToolCall, ToolResult
from fumehood.layers.faults.family import BoundFault, payload_integer

DEFAULT_TIMEOUT_MS = 1000


class Timeout:
    """Answers ``timeout`` in the tool's place (ToolMisuseBench, spec part 4.4).

    Payload: ``timeout_ms``, what the agent is told it waited, milliseconds, default 1000.
    """

    def __init__(self, armed: BoundFault) -> None:
        self._armed = armed
        self._timeout_ms = payload_integer(armed.rule, "timeout_ms", DEFAULT_TIMEOUT_MS)

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Strike, or let the call pass."""
        if not self._armed.strikes(call):
            return forward(call)
        return Failure(
            FailureKind.FAULT,
            "timeout",
            "Tool call timed out.",
            {"timeout_ms": self._timeout_ms},
            (self._armed.rule.event(),),
        )
