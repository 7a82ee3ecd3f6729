"""Fault family ``outage``: tools become unavailable one after the other, and recover."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Forward, ToolCall, ToolResult
from fumehood.layers.faults.family import BoundFault, FaultFamily, described, payload_of


@dataclass(frozen=True, slots=True)
class OutagePayload:
    """Which tools fail, and when. Times are virtual; without a clock they are calls."""

    tools: list[str] = field(
        default_factory=list,
        metadata=described("Tools in the order in which they fail; none means all tools at once."),
    )
    start_s: int = field(
        default=0,
        metadata=described("Start, seconds of virtual time, or calls of the episode.", minimum=0),
    )
    duration_s: int = field(
        default=5, metadata=described("Duration per tool, in the same unit.", minimum=1)
    )
    spread_s: int = field(
        default=1,
        metadata=described("Delay until the next tool fails, in the same unit.", minimum=0),
    )


class Outage(FaultFamily):
    """Answers ``unavailable`` in place of the tools that have failed."""

    order = 320
    payload = OutagePayload
    example: ClassVar[JsonObject] = {"start_s": 0, "duration_s": 1000}
    remedy = "Use tools that still work, wait, and read the state back before going on."
    check = (
        "Require the effect after the outage, and forbid a second one; `retries` bounds "
        "blind repetition."
    )

    def __init__(self, fault: BoundFault) -> None:
        super().__init__(fault)
        self._settings = payload_of(fault.rule, OutagePayload)
        tools = self._settings.tools
        if not isinstance(tools, list) or not all(isinstance(tool, str) for tool in tools):
            raise SpecError(fault.rule.location("payload", "tools"), "must be a list of tool names")

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call, or fail during the outage of its tool."""
        if not self._is_down(call) or not self.fault.fires_on(call):
            return forward(call)
        return self.unavailable(call)

    def _is_down(self, call: ToolCall) -> bool:
        settings, clock = self._settings, self.fault.clock
        if settings.tools and call.tool_name not in settings.tools:
            return False
        position = settings.tools.index(call.tool_name) if settings.tools else 0
        begins = settings.start_s + position * settings.spread_s
        now = call.number - 1 if clock is None else clock.now_ms / 1000
        return begins <= now < begins + settings.duration_s
