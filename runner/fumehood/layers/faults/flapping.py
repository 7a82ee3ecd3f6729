"""Fault family ``flapping``: first `down` calls of a tool fail, then `up` calls work, and so on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Forward, ToolCall, ToolResult
from fumehood.layers.faults.family import BoundFault, FaultFamily, described, payload_of


@dataclass(frozen=True, slots=True)
class FlappingPayload:
    """How many calls fail and work in turn; the tool fails first."""

    down: int = field(default=1, metadata=described("Calls that fail in a row.", minimum=1))
    up: int = field(default=1, metadata=described("Calls that work in a row.", minimum=0))


class Flapping(FaultFamily):
    """Answers ``unavailable`` to the first calls of each period."""

    order = 330
    payload = FlappingPayload
    example: ClassVar[JsonObject] = {"down": 1, "up": 0}
    remedy = "Repeat the call; read the state back before repeating a call that may have worked."
    check = (
        "Require the effect exactly once, with a budget of `retries` that blind repetition exceeds."
    )

    def __init__(self, fault: BoundFault) -> None:
        super().__init__(fault)
        self._settings = payload_of(fault.rule, FlappingPayload)
        self._calls = 0

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call, or fail."""
        if not self.fault.fires_on(call):
            return forward(call)
        position = self._calls % (self._settings.down + self._settings.up)
        self._calls += 1
        if position >= self._settings.down:
            return forward(call)
        return self.unavailable(call)
