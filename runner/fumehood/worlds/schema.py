"""Helpers of the worlds: tool specifications, rejections and ordered sets."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable
from types import ModuleType

from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Failure, FailureKind, ToolSpec


def tool(name: str, description: str, /, **arguments: str) -> ToolSpec:
    """Return a tool whose arguments are all required and that accepts no others.

    Args:
        name: of the tool.
        description: one sentence for agents.
        arguments: name → JSON Schema type, in the order in which agents see them.
    """
    properties: JsonObject = {argument: {"type": kind} for argument, kind in arguments.items()}
    parameters: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": list(arguments),
        "additionalProperties": False,
    }
    return ToolSpec(name, parameters, description)


class OrderedSet(dict[Hashable, None]):
    """The part of the set interface that third-party simulators use, in insertion order."""

    def __init__(self, members: Iterable[Hashable] = ()) -> None:
        super().__init__(dict.fromkeys(members))

    def __sub__(self, others: Container[Hashable]) -> OrderedSet:
        """Return the members that are not among the others."""
        return OrderedSet(member for member in self if member not in others)


def keep_order(module: ModuleType) -> None:
    """Replace ``set`` in a module, because Python's order of strings differs between processes."""
    vars(module)["set"] = OrderedSet


NO_SUCH_TOOL = Failure(FailureKind.INVALID_CALL, "unknown_tool", "There is no such tool.")


def reject(code: str, message: str) -> Failure:
    """Return a tool's rejection of a call, without details, like ToolMisuseBench's reference."""
    return Failure(FailureKind.WORLD, code, message)
