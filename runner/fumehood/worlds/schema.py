"""How the simulators write down their tools."""

from __future__ import annotations

from fumehood.core.json_values import JsonObject
from fumehood.core.tools import ToolSpec


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
