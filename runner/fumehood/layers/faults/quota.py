"""Fault family ``quota``: a tool admits a number of calls, and admits more after a while."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Forward, ToolCall, ToolResult
from fumehood.layers.faults.family import BoundFault, FaultFamily, described, payload_of


@dataclass(frozen=True, slots=True)
class QuotaPayload:
    """How many calls are admitted, and when the next one."""

    calls: int = field(
        default=1, metadata=described("Calls that are admitted at once, from the start.", minimum=0)
    )
    refill_ms: int = field(
        default=60_000,
        metadata=described(
            "Virtual time until one more call is admitted, milliseconds.", minimum=1
        ),
    )
    refill_calls: int = field(
        default=3,
        metadata=described("The same in calls of the episode, in a world without time.", minimum=1),
    )


class Quota(FaultFamily):
    """Answers ``rate_limited`` while no call is left; the quota refills up to its size."""

    order = 310
    payload = QuotaPayload
    example: ClassVar[JsonObject] = {"calls": 0}
    remedy = "Wait as long as the error says, then repeat the call; use the quota for what matters."
    check = "Require the urgent call in time, and bound `retries`, so that only waiting helps."

    def __init__(self, fault: BoundFault) -> None:
        super().__init__(fault)
        self._settings = payload_of(fault.rule, QuotaPayload)
        self._left = self._settings.calls
        self._refilled_at = 0

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call while the quota admits it."""
        if not self.fault.fires_on(call):
            return forward(call)
        now, interval = self._now(call)
        refills = (now - self._refilled_at) // interval
        self._refilled_at += refills * interval
        self._left = min(self._left + refills, max(1, self._settings.calls))
        if self._left > 0:
            self._left -= 1
            return forward(call)
        unit = "retry_after_calls" if self.fault.clock is None else "retry_after_ms"
        details: JsonObject = {unit: self._refilled_at + interval - now}
        return self.fail("rate_limited", "Rate limit exceeded.", details)

    def _now(self, call: ToolCall) -> tuple[int, int]:
        """Return the time or the number of the call, and the interval of refills in this unit."""
        if self.fault.clock is None:
            return call.number, self._settings.refill_calls
        return self.fault.clock.now_ms, self._settings.refill_ms
