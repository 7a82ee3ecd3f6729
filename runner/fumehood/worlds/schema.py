"""How the simulators write down their tools."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable
from types import ModuleType

from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Failure, FailureKind, ToolSpec


def tool(name: str, description: str, /, **arguments: str) -> ToolSpec:
    """Return a tool all of whose arguments are required and that takes no others.

    Args:
        name: of the tool.
        description: one sentence for an agent.
        arguments: name → JSON Schema type word, in the order in which agents see them.
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
    """As much of a set as they use."""

    def __init__(self, members: Iterable[Hashable] = ()) -> None:
        super().__init__(dict.fromkeys(members))

    def __sub__(self, others: Container[Hashable]) -> OrderedSet:
        """Return what is not among the others."""
        return OrderedSet(each for each in self if each not in others)


def keep_order(module: ModuleType) -> None:
    """Have the functions of a module make such sets where they call ``set``."""
    vars(module)["set"] = OrderedSet


def refuse(code: str, message: str) -> Failure:
    """Return a tool's own refusal, without details, as the ToolMisuseBench reference does."""
    return Failure(FailureKind.WORLD, code, message)
