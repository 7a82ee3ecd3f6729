"""A stub model for the agent check: it requests a tool twice, then ends. It needs no key and no
network."""

from __future__ import annotations

import json
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
SHELL_CALL = "/fumehood/bin/fumehood call list_jobs"
"""Command for an agent whose only tool is a shell. Every robustness case has this tool."""
SHELL_END = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""Line that agents of the SWE-agent family print before their answer, in order to end."""
FINAL_ANSWER = "final_answer"
"""Tool that smolagents calls in order to end."""


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
    if not tools:
        return DONE
    # A tool without required arguments can always be called.
    tools.sort(key=lambda tool: (not any(name in tool[0] for name in seat_tools), bool(tool[1])))
    name, required = tools[0]
    # Some agents drop a second call with the same ID.
    call_id = f"call_{len(messages)}"
    if _results(messages) >= CALLS:
        return _end(asked, name, [tool for tool, _ in tools], call_id)
    arguments = {"command": SHELL_CALL} if _is_shell(required) else {}
    return ScriptedReply(tools=(ToolUse(name, arguments, call_id),))


def _end(asked: AskedOfModel, first: str, names: Collection[str], call_id: str) -> ScriptedReply:
    """Return the reply that ends the turn, which some agents expect as a call."""
    if FINAL_ANSWER in names:
        return ScriptedReply(tools=(ToolUse(FINAL_ANSWER, {"answer": DONE.text}, call_id),))
    if SHELL_END.encode() in asked.body:
        command = f"echo {SHELL_END} && echo {DONE.text}"
        return ScriptedReply(tools=(ToolUse(first, {"command": command}, call_id),))
    return DONE


def _is_shell(required: Sequence[str]) -> bool:
    return list(required) == ["command"]


def _name_and_required(tool: Mapping[str, Any]) -> tuple[str, Sequence[str]]:
    """Return a tool's name and required arguments, from the format of any provider."""
    function = tool.get("function", tool)
    schema = function.get("parameters") or function.get("input_schema") or {}
    return str(function.get("name", "")), schema.get("required") or ()


def _results(messages: str | Sequence[Mapping[str, Any]]) -> int:
    """Return the number of tool results since the last message of the user."""
    listed = messages if isinstance(messages, list) else []
    count = 0
    for before, message in reversed(list(zip([{}, *listed], listed, strict=False))):
        if _is_result(message) or _is_answered_request(before, message):
            count += 1
        elif message.get("role") == "user":
            break
    return count


def _is_answered_request(before: Mapping[str, Any], message: Mapping[str, Any]) -> bool:
    """Return whether a message reports a result in the name of the user, as some agents do."""
    is_request = before.get("role") == "assistant" and DONE.text not in json.dumps(before)
    return is_request and message.get("role") == "user"


def _is_result(message: Mapping[str, Any]) -> bool:
    if message.get("role") == "tool" or message.get("type") == "function_call_output":
        return True
    parts = message.get("content")
    return isinstance(parts, list) and any(
        isinstance(part, dict) and part.get("type") == "tool_result" for part in parts
    )
