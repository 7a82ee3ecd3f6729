"""A model for agents that are looked at: it asks for a tool twice, then says that it is done.

It needs no key and no network, and knows nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fumehood.gateway.settings import GatewaySettings, Provider
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply, ToolUse

NAME = "stand-in"
"""Of the model; whatever else an agent asks for is answered just so."""
DONE = ScriptedReply(text="That is all there is to say.")
CALLS = 2
"""That it asks for, each time it is told something new."""


def stand_in(seats_tools: Collection[str]) -> ScriptedModels:
    """Return the model, to be entered.

    Args:
        seats_tools: names that it looks for first among the tools that an agent offers, for agents bring
            tools of their own and call those of a seat by longer names.
    """
    return ScriptedModels(lambda asked: _reply(asked, seats_tools))


def leading_to(models: ScriptedModels) -> GatewaySettings:
    """Return what a service is told, so that every model that is asked for is this one."""
    # By name, so that it is listed; by pattern, so that it answers for any other.
    return GatewaySettings(
        providers=(Provider(name=NAME, address=models.address, models=(NAME, "*")),)
    )


def _reply(asked: AskedOfModel, seats_tools: Collection[str]) -> ScriptedReply:
    request = asked.request
    tools = [_described(tool) for tool in request.get("tools") or ()]
    told = request.get("messages") or request.get("input") or ()
    if not tools or _results(told) >= CALLS:
        return DONE
    # One that takes nothing can be called without knowing anything.
    tools.sort(key=lambda tool: (not any(name in tool[0] for name in seats_tools), bool(tool[1])))
    return ScriptedReply(tools=(ToolUse(tools[0][0]),))


def _described(tool: Mapping[str, Any]) -> tuple[str, Sequence[str]]:
    """Return a tool's name and what it requires, in whichever words it is described."""
    told = tool.get("function", tool)
    schema = told.get("parameters") or told.get("input_schema") or {}
    return str(told.get("name", "")), schema.get("required") or ()


def _results(told: str | Sequence[Mapping[str, Any]]) -> int:
    """Return how many answers of tools there are since the user spoke."""
    count = 0
    for message in reversed(told if isinstance(told, list) else []):
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
