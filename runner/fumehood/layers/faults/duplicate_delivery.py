"""Fault family ``duplicate_delivery``: a tool receives the same call twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Forward, ToolCall, ToolResult
from fumehood.layers.faults.family import FaultFamily


@dataclass(frozen=True, slots=True)
class NoPayload:
    """This family has no settings."""


class DuplicateDelivery(FaultFamily):
    """Forwards a call twice. The agent reads the first result."""

    order = 420
    payload = NoPayload
    example: ClassVar[JsonObject] = {}
    remedy = "Read the state back after a change, and undo what was done twice."
    check = (
        "Require the exact amount or number of entries: without a look, the effect is there twice."
    )
    delivers_again = True

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call, twice if the fault fires."""
        fires = self.fault.fires_on(call)
        result = forward(call)
        if not fires:
            return result
        forward(call)
        return self.fired(result)
