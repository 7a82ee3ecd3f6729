"""Lets each call take virtual time."""

from __future__ import annotations

from fumehood.core.fault_plan import RandomSource
from fumehood.core.tools import Forward, ToolCall, ToolResult
from fumehood.core.virtual_time import ANY_TOOL, KeepsTime

_NO_RULE = -1
"""Draws of latencies belong to no fault rule."""


class TakeTime:
    """Advances the virtual time by the latency of the tool, then forwards the call.

    It is outside the faults, so that a call that a fault answers takes time too.
    """

    def __init__(self, world: KeepsTime, random_source: RandomSource) -> None:
        """Create the layer.

        Args:
            world: keeps the time.
            random_source: draws the latencies.
        """
        self._world = world
        self._random_source = random_source

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Take the time of the call, and forward it."""
        latencies = self._world.time_rules.latencies
        latency = latencies.get(call.tool_name, latencies.get(ANY_TOOL))
        if latency is not None:
            quantile = self._random_source.draw(_NO_RULE, call, "latency")
            self._world.pass_us(1000 * latency.at(quantile))
        return forward(call)
