"""Executes the calls of a model and formats their results for it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from fumehood_agent.errors import Refused
from fumehood_agent.scaffolds.dialects import read_arguments
from fumehood_agent.seat import JsonObject, Seat, Tool, Value

GIVE_UP = Tool(
    "give_up",
    {
        "type": "object",
        "properties": {"reason": {"type": "string"}},
        "required": ["reason"],
        "additionalProperties": False,
    },
    "Give up. Call this tool if the task cannot or must not be done.",
)


def prompt(name: str) -> str:
    """Return the prompt of a scaffold, from the file with its name."""
    return (Path(__file__).parent / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()


def opening(system: str, user: str) -> tuple[JsonObject, JsonObject]:
    """Return the first messages of a conversation."""
    return {"role": "system", "content": system}, {"role": "user", "content": user}


def with_tools(text: str, tools: Iterable[Tool]) -> str:
    """Return a prompt followed by the descriptions of tools."""
    lines = (f"{tool.name}: {tool.description} {json.dumps(tool.parameters)}" for tool in tools)
    return f"{text}\n\nTools:\n" + "\n".join(lines)


def carry_out(seat: Seat, name: str, arguments_text: str) -> tuple[str, bool]:
    """Execute a call as a model wrote it.

    Args:
        seat: the seat of the agent.
        name: of the tool; ``give_up`` ends the work.
        arguments_text: the arguments; may be invalid JSON.

    Returns:
        The result for the model, and whether the work has ended.

    Raises:
        Ended: the work had ended before.
    """
    arguments = read_arguments(arguments_text)
    if arguments is None:
        return _as_text({"error": "the arguments must be one JSON object"}), False
    if name == GIVE_UP.name:
        seat.give_up(str(arguments.get("reason", "")))
        return "", True
    try:
        reply = seat.call(name, arguments)
    except Refused as refused:
        if refused.kind.name == "ENDED":
            raise
        return _as_text({"error": str(refused)}), False
    result = reply.result
    if isinstance(result, Value):
        return _as_text(result.output), reply.ended
    failure = {"error": result.code, "message": result.message, "details": result.details}
    return _as_text(failure), reply.ended


def _as_text(value: JsonObject) -> str:
    return json.dumps(value, ensure_ascii=False)
