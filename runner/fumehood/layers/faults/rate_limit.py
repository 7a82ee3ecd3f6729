"""Fault family ``rate_limit``: a tool was called too often."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Forward, ToolCall, ToolResult
from fumehood.layers.faults.family import BoundFault, FaultFamily, described, payload_of


@dataclass(frozen=True, slots=True)
class RateLimitPayload:
    """Which calls pass, and what the agent reads."""

    after_n_calls: int = field(
        default=0,
        metadata=described("Number of calls in the episode before the fault can fire.", minimum=0),
    )
    retry_after_ms: int = field(
        default=250,
        metadata=described("Waiting time that the agent reads, milliseconds.", minimum=0),
    )


class RateLimit(FaultFamily):
    """Answers ``rate_limited`` after a number of calls.

    Source: docs/reference/toolmisuse.md, Fault families.
    """

    order = 300
    payload = RateLimitPayload
    example: ClassVar[JsonObject] = {"retry_after_ms": 5}
    remedy = "Repeat the call, or use another tool; the tool did not receive the call."
    check = "Require the effect, and bound `retries`, so that only waiting helps."

    def __init__(self, fault: BoundFault) -> None:
        super().__init__(fault)
        self._settings = payload_of(fault.rule, RateLimitPayload)

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Fire, or forward the call."""
        # The trigger is asked first, because asking may advance ToolMisuseBench's random stream.
        if not self.fault.fires_on(call) or call.number <= self._settings.after_n_calls:
            return forward(call)
        details: JsonObject = {"retry_after_ms": self._settings.retry_after_ms}
        return self.fail("rate_limited", "Rate limit exceeded.", details)
