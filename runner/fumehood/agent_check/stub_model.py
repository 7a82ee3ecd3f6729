"""A stub model for the agent check: it requests a tool twice, then ends. It needs no key and no
network."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fumehood.gateway.settings import GatewaySettings, Provider
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply, ToolUse

NAME = "stub"
"""Name of the model. Requests for any other model get the same answers."""
DONE = ScriptedReply(text="Done.")
CALLS = 2
"""Tool calls per turn of the user."""


def stub_model(seat_tools: Collection[str]) -> ScriptedModels:
    """Return the model, a context manager; it prefers the tools of the seat.

    Agents add other tools, and may prefix the names of those of the seat.
    """
    return ScriptedModels(lambda request: _reply(request, seat_tools))


def gateway_settings(models: ScriptedModels) -> GatewaySettings:
    """Return settings in which every model is the stub."""
    # The name makes it part of the list of models; the pattern matches all other names.
    return GatewaySettings(
        providers=(Provider(name=NAME, address=models.address, models=(NAME, "*")),)
    )


def _reply(asked: AskedOfModel, seat_tools: Collection[str]) -> ScriptedReply:
    request = asked.request
    tools = [_name_and_required(tool) for tool in request.get("tools") or ()]
    messages = request.get("messages") or request.get("input") or ()
    if not tools or _results(messages) >= CALLS:
        return DONE
    # A tool without required arguments can always be called.
    tools.sort(key=lambda tool: (not any(name in tool[0] for name in seat_tools), bool(tool[1])))
    return ScriptedReply(tools=(ToolUse(tools[0][0]),))


def _name_and_required(tool: Mapping[str, Any]) -> tuple[str, Sequence[str]]:
    """Return a tool's name and required arguments, from the format of any provider."""
    function = tool.get("function", tool)
    schema = function.get("parameters") or function.get("input_schema") or {}
    return str(function.get("name", "")), schema.get("required") or ()


def _results(messages: str | Sequence[Mapping[str, Any]]) -> int:
    """Return the number of tool results since the last message of the user."""
    count = 0
    for message in reversed(messages if isinstance(messages, list) else []):
        if _is_result(message):
            count += 1
        elif message.get("role") == "user":
            break
    return count


def _is_result(message: Mapping[str, Any]) -> bool:
    if message.get("role") == "tool" or message.get("type") == "function_call_output":
        return True
    parts = message.get("content")
    return isinstance(parts, list) and any(
        isinstance(part, dict) and part.get("type") == "tool_result" for part in parts
    )
