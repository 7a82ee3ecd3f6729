"""The observation of a ``reset``/``act`` agent: plain dicts, as such agents expect them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

from fumehood_agent.seat import Failure, JsonObject, Remaining, Reply, Task, Tool, Value


class ToolSchema(TypedDict):
    """A tool with the parts of its JSON Schema that describe its arguments."""

    name: str
    properties: JsonObject
    """Argument → its schema, in the tool's order."""
    required: list[str]
    additionalProperties: bool
    description: NotRequired[str]
    """Missing if the tool has none."""


class Problem(TypedDict):
    """Why a call failed."""

    code: str
    message: str
    details: JsonObject


class Entry(TypedDict):
    """One call and its result; exactly one of ``output`` and ``error`` is not None."""

    tool_name: str
    args: JsonObject
    """The recorded arguments: those that were sent, unless the reply contains others."""
    output: JsonObject | None
    error: Problem | None


RemainingBudget = dict[str, int]
"""Units left, such as ``{"steps_left": 6, "tool_calls_left": 4}``. A missing key means no limit.

Wall time is left out, because it differs between two runs of the same agent.
"""


class EarlierTurn(TypedDict):
    """An earlier message of the user, with its answer."""

    instruction: str
    answer: str


class Observation(TypedDict):
    """All that an agent knows when it acts."""

    instruction: str
    """The last message of the user."""
    earlier_turns: NotRequired[list[EarlierTurn]]
    """Oldest first; missing if there are none."""
    tool_schemas: list[ToolSchema]
    transcript: list[Entry]
    """Every call so far, oldest first."""
    remaining_budget: RemainingBudget
    last_error: Problem | None
    """Error of the last call; None if it succeeded or there was none."""


class Transcript:
    """Collects calls and answers, and creates observations from them."""

    def __init__(self, task: Task) -> None:
        self._entries: list[Entry] = []
        self._earlier: list[EarlierTurn] = []
        self._problem: Problem | None = None
        self._take(task)

    def begin_turn(self, answer: str, task: Task) -> None:
        """Add an answer and the task that follows it."""
        self._earlier.append({"instruction": self._instruction, "answer": answer})
        self._take(task)

    def _take(self, task: Task) -> None:
        self._instruction = task.instruction
        self._schemas = [tool_schema(tool) for tool in task.tools]
        self._remaining = task.remaining

    def record(self, name: str, arguments: Mapping[str, Any], reply: Reply) -> None:
        """Add one call and its reply."""
        recorded = reply.recorded_arguments
        output, self._problem = _split(reply.result)
        self._remaining = reply.remaining
        self._entries.append(
            {
                "tool_name": name,
                "args": dict(arguments) if recorded is None else recorded,
                "output": output,
                "error": self._problem,
            }
        )

    def observation(self) -> Observation:
        """Return the current observation.

        Each observation has a new list of entries, so that an agent may keep it; the entries are
        shared.
        """
        observation: Observation = {
            "instruction": self._instruction,
            "tool_schemas": self._schemas,
            "transcript": self._entries.copy(),
            "remaining_budget": _budget(self._remaining),
            "last_error": self._problem,
        }
        if self._earlier:
            observation["earlier_turns"] = self._earlier.copy()
        return observation


def tool_schema(tool: Tool) -> ToolSchema:
    """Return a tool in the form in which ``reset``/``act`` agents read it."""
    parameters = tool.parameters
    schema: ToolSchema = {
        "name": tool.name,
        "properties": parameters.get("properties", {}),
        "required": parameters.get("required", []),
        "additionalProperties": parameters.get("additionalProperties", True),
    }
    if tool.description:
        schema["description"] = tool.description
    return schema


def _split(result: Value | Failure) -> tuple[JsonObject | None, Problem | None]:
    if isinstance(result, Value):
        return result.output, None
    return None, {"code": result.code, "message": result.message, "details": result.details}


def _budget(remaining: Remaining) -> RemainingBudget:
    # Existing reset/act agents read the kind "calls" by this name.
    names = {"calls": "tool_calls"}
    return {
        f"{names.get(kind, kind)}_left": units
        for kind, units in remaining.items()
        if kind != "wall_ms"
    }
