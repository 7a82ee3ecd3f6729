"""A world behind layers."""

from __future__ import annotations

from collections.abc import Sequence

from fumehood.core.tools import Forward, Layer, ToolCall, ToolResult, Toolset, ToolSpec


def _step(layer: Layer, forward: Forward) -> Forward:
    """Return the way through one layer, its parts looked up once rather than at every call."""
    around = layer.around

    def step(call: ToolCall) -> ToolResult:
        return around(call, forward)

    return step


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
            forward = _step(layer, forward)
        self.call: Forward = forward

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools behind the door, in their order."""
        return self._toolset.list_tools()
