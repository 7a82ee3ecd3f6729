"""Lets each call take virtual time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from fumehood.core.fault_plan import RandomSource
from fumehood.core.tools import Forward, ToolCall, ToolResult
from fumehood.core.virtual_time import ANY_TOOL, KeepsTime

_NO_RULE = -1
"""Draws of latencies belong to no fault rule."""


class TakeTime:
    """Advances the virtual time by the latency of the tool, then forwards the call.

    It is outside the faults, so that a call that a fault answers takes time too.
    """

    def __init__(
        self,
        world: KeepsTime,
        random_source: RandomSource,
        recorded_tokens: Iterable[tuple[int, int]] = (),
    ) -> None:
        """Create the layer.

        Args:
            world: keeps the time.
            random_source: draws the latencies.
            recorded_tokens: in a replay, numbers of calls of the seat in ascending order, each with
                the tokens of models before it.
        """
        self._world = world
        self._random_source = random_source
        self._tokens_us = 0
        """Time of the models' tokens since the last call, microseconds."""
        self._recorded_tokens = deque(recorded_tokens)

    def add_tokens(self, tokens: int) -> None:
        """Add the time of a model request, which passes with the next call."""
        self._tokens_us += tokens * self._world.time_rules.token_us

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Take the time of the model requests and of the call, and forward it."""
        while self._recorded_tokens and self._recorded_tokens[0][0] <= call.number:
            self.add_tokens(self._recorded_tokens.popleft()[1])
        duration_us, self._tokens_us = self._tokens_us, 0
        latencies = self._world.time_rules.latencies
        latency = latencies.get(call.tool_name, latencies.get(ANY_TOOL))
        if latency is not None:
            quantile = self._random_source.draw(_NO_RULE, call, "latency")
            duration_us += 1000 * latency.at(quantile)
        if duration_us:
            self._world.pass_us(duration_us)
        return forward(call)
