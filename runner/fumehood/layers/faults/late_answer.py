"""Fault family ``late_answer``: a result arrives late in virtual time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.shared_time import WorkEnded
from fumehood.core.tools import Forward, ToolCall, ToolResult
from fumehood.layers.faults.family import BoundFault, FaultFamily, described, payload_of


@dataclass(frozen=True, slots=True)
class LateAnswerPayload:
    """The delay."""

    delay_ms: int = field(
        default=60_000,
        metadata=described("Virtual time between effect and result, milliseconds.", minimum=0),
    )


class LateAnswer(FaultFamily):
    """Lets virtual time pass after the effect of a call; the result is as old as the delay.

    It needs a world with virtual time.
    """

    order = 405
    payload = LateAnswerPayload
    example: ClassVar[JsonObject] = {"delay_ms": 5}
    remedy = "Look at the time after each call, and read again what may have changed."
    check = (
        "Require a look (`called_before`) between the late result and the action that "
        "depends on it."
    )

    def __init__(self, fault: BoundFault) -> None:
        super().__init__(fault)
        self._delay_ms = payload_of(fault.rule, LateAnswerPayload).delay_ms
        if fault.clock is None:
            raise SpecError(fault.rule.location("family"), "needs a world with virtual time")

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call, and let time pass if the fault fires."""
        fires = self.fault.fires_on(call)
        result = forward(call)
        if not fires or self.fault.clock is None:
            return result
        late = self.fired(result)
        try:
            self.fault.clock.pass_us(1000 * self._delay_ms)
        except WorkEnded as ended:
            ended.result = late
            raise
        return late
