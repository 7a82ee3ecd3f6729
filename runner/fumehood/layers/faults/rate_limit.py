"""A tool that has been called too often."""

from __future__ import annotations

from fumehood.core.tools import Failure, FailureKind, Forward, ToolCall, ToolResult
from fumehood.layers.faults.family import BoundFault, payload_integer

DEFAULT_RETRY_AFTER_MS = 250


class RateLimit:
    """Answers ``rate_limited`` once the episode has made enough calls (ToolMisuseBench, spec part 4.4).

    Payload: ``after_n_calls``, calls of the episode that pass first, default 0; ``retry_after_ms``, what
    the agent is told to wait, milliseconds, default 250.
    """

    def __init__(self, armed: BoundFault) -> None:
        self._armed = armed
        self._after_n_calls = payload_integer(armed.rule, "after_n_calls", 0)
        self._retry_after_ms = payload_integer(armed.rule, "retry_after_ms", DEFAULT_RETRY_AFTER_MS)

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Strike, or let the call pass."""
        # The trigger is asked first, because asking may move the reference's random stream.
        if not self._armed.strikes(call) or call.number <= self._after_n_calls:
            return forward(call)
        return Failure(
            FailureKind.FAULT,
            "rate_limited",
            "Rate limit exceeded.",
            {"retry_after_ms": self._retry_after_ms},
            (self._armed.rule.event(),),
        )
