"""A world behind layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runner.core.tools import Forward, Layer, ToolCall, ToolResult, Toolset, ToolSpec


@dataclass(frozen=True, slots=True)
class _Step:
    """One layer with the way inward from it; a bound method of it is a :data:`Forward`."""

    layer: Layer
    forward: Forward

    def call(self, call: ToolCall) -> ToolResult:
        return self.layer.around(call, self.forward)


class Door:
    """A toolset reached through layers, itself a toolset.

    Knows nothing about budgets, faults, traces or worlds: those are layers and toolsets.
    """

    def __init__(self, toolset: Toolset, layers: Sequence[Layer]) -> None:
        """Build the way in.

        Args:
            toolset: what stands behind the door.
            layers: outermost first, so that the list reads in the order a call meets them.
        """
        self._toolset = toolset
        forward: Forward = toolset.call
        for layer in reversed(layers):
            forward = _Step(layer, forward).call
        self.call: Forward = forward

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools behind the door, in their order."""
        return self._toolset.list_tools()
