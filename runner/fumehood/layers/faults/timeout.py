"""Fault family ``timeout``: a call times out, and the tool never receives it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Failure, Forward, ToolCall, ToolResult
from fumehood.layers.faults.family import BoundFault, FaultFamily, described, payload_of


@dataclass(frozen=True, slots=True)
class TimeoutPayload:
    """The payload of the family."""

    timeout_ms: int = field(
        default=1000,
        metadata=described("Waiting time that the agent reads, milliseconds.", minimum=0),
    )


class Timeout(FaultFamily):
    """Answers ``timeout`` in place of the tool (docs/reference/toolmisuse.md, Fault families)."""

    order = 400
    payload = TimeoutPayload
    example: ClassVar[JsonObject] = {"timeout_ms": 5}
    remedy = "Repeat the call, or use another tool; the tool did not receive the call."
    check = "Require the effect exactly once, as for `lost_reply`, which reads the same."

    def __init__(self, fault: BoundFault) -> None:
        super().__init__(fault)
        self._timeout_ms = payload_of(fault.rule, TimeoutPayload).timeout_ms

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Fire, or forward the call."""
        if not self.fault.fires_on(call):
            return forward(call)
        return self.timed_out()

    def timed_out(self) -> Failure:
        """Return the error that the agent reads."""
        return self.fail("timeout", "Tool call timed out.", {"timeout_ms": self._timeout_ms})
