"""Carrying out what a model wants, and telling it what came of it."""

from __future__ import annotations

import json
from pathlib import Path

from fumehood_agent.errors import Refused
from fumehood_agent.seat import JsonObject, Seat, Tool, Value

GIVE_UP = Tool(
    "give_up",
    {
        "type": "object",
        "properties": {"reason": {"type": "string"}},
        "required": ["reason"],
        "additionalProperties": False,
    },
    "Ends the work because it cannot or must not be done.",
)


def prompt(name: str) -> str:
    """Return what a scaffold says to its model, from the file of its name."""
    return (Path(__file__).parent / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()


def carry_out(seat: Seat, name: str, arguments_text: str) -> tuple[str, bool]:
    """Make a call as a model wrote it.

    Args:
        seat: where.
        name: of the tool; ``give_up`` ends the work.
        arguments_text: JSON, or what a model takes for it.

    Returns:
        What to tell the model, and whether the work has ended.

    Raises:
        Ended: the work had ended before.
    """
    try:
        arguments = json.loads(arguments_text or "{}")
    except ValueError as error:
        return _told({"error": "arguments are not JSON", "message": str(error)}), False
    if not isinstance(arguments, dict):
        return _told({"error": "arguments must be one JSON object"}), False
    if name == GIVE_UP.name:
        seat.give_up(str(arguments.get("reason", "")))
        return "", True
    try:
        reply = seat.call(name, arguments)
    except Refused as refused:
        if refused.kind.name == "ENDED":
            raise
        return _told({"error": str(refused)}), False
    result = reply.result
    if isinstance(result, Value):
        return _told(result.output), reply.ended
    failure = {"error": result.code, "message": result.message, "details": result.details}
    return _told(failure), reply.ended


def _told(value: JsonObject) -> str:
    return json.dumps(value, ensure_ascii=False)
