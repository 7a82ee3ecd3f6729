"""Answers for the tools when a call names none that is on offer now."""

from __future__ import annotations

from collections.abc import Iterable

from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Failure, FailureKind, Forward, ToolCall, ToolResult, ToolSpec
from fumehood.core.turns import TurnQueue


class RestrictTools:
    """A tool that comes with a later turn is, until then, like one that does not exist."""

    def __init__(
        self, tools: tuple[ToolSpec, ...], script: TurnQueue, *, early: bool = False
    ) -> None:
        """Stand ready.

        Args:
            tools: of the world, in their order.
            script: of the seat; says which of them are still hidden.
            early: whether a tool of a later turn that is called all the same is there, as in benchmarks that
                hide tools in what they tell an agent and nowhere else. Another seat's tool never is.
        """
        self._names = tuple(tool.name for tool in tools)
        self._script = script
        self._early = frozenset(self._names) - script.withheld if early else frozenset[str]()

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward a call of a tool on offer, answer any other."""
        shown = [name for name in self._names if name not in self._script.hidden]
        if call.tool_name in shown or call.tool_name in self._early:
            return forward(call)
        return unknown_tool(call.tool_name, shown)


def unknown_tool(name: str, available: Iterable[str]) -> Failure:
    """Return what a call of a tool that is not there gets."""
    details: JsonObject = {"tool_name": name, "available": list(available)}
    return Failure(FailureKind.INVALID_CALL, "unknown_tool", "There is no such tool.", details)
