"""Fault family ``stale_read``: a tool returns what it returned before a change."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from fumehood.core.json_values import JsonObject, canonical_json
from fumehood.core.tools import Forward, ToolCall, ToolResult, Value
from fumehood.layers.faults.duplicate_delivery import NoPayload
from fumehood.layers.faults.family import BoundFault, FaultFamily


class StaleRead(FaultFamily):
    """Returns the first result of an equal call in place of a different one.

    The tool executes the call. The fault does not fire if the results are equal.
    """

    order = 160
    payload = NoPayload
    example: ClassVar[JsonObject] = {}
    remedy = (
        "Read again later, or with another tool; do not repeat a change that is not visible yet."
    )
    check = (
        "Require the right final state: an agent that trusts the read changes it twice "
        "or not at all."
    )
    needs_value = True
    needs_earlier_calls = True

    def __init__(self, fault: BoundFault) -> None:
        super().__init__(fault)
        self._first: dict[str, JsonObject] = {}

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call, and return an old value if the fault fires."""
        result = forward(call)
        if not isinstance(result, Value) or not self.fault.trigger.matches(call):
            return result
        first = self._first.setdefault(
            canonical_json([call.tool_name, dict(call.arguments)]), result.output
        )
        if first == result.output or not self.fault.fires_on(call):
            return result
        return self.fired(replace(result, output=first))
