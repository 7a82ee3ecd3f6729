"""An agent that ignores its instruction: it calls every tool once and repairs failed calls.

After an error it corrects the recorded arguments as the error states and calls the same tool again;
if the error names nothing to correct, it repeats the call. Otherwise it calls the next tool, with a
default for each required argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fumehood_agent.adapter import Action
from fumehood_agent.observation import Observation, Problem, ToolSchema
from fumehood_agent.seat import JsonObject

_DEFAULTS: Mapping[str, Callable[[], Any]] = {
    "string": lambda: "value",
    "integer": lambda: 1,
    "number": lambda: 1.0,
    "boolean": lambda: False,
    "object": dict,
    "array": list,
}

_ALIASES = {"id": "doc_id", "doc_id": "id", "account_id": "id"}
"""Missing argument → the name under which it may have been sent."""


class SchemaRepair:
    """Calls every tool once; after an error, repairs the call and sends it again."""

    def __init__(self) -> None:
        self._opened: set[str] = set()

    def reset(self) -> None:
        """Forget which tools were called."""
        self._opened.clear()

    def act(self, observation: Observation) -> Action | None:
        """Repair the last call if it failed, else call the next tool; None after the last tool."""
        return repaired(observation) or self.open_next(observation)

    def open_next(self, observation: Observation) -> Action | None:
        """Return a default call of the first tool that was not called yet."""
        for schema in observation["tool_schemas"]:
            if schema["name"] not in self._opened:
                self._opened.add(schema["name"])
                return {"tool_name": schema["name"], "args": default_arguments(schema)}
        return None


def repaired(observation: Observation) -> Action | None:
    """Return the last call, corrected as its error states; None if it did not fail."""
    problem, transcript = observation["last_error"], observation["transcript"]
    if problem is None or not transcript:
        return None
    last = transcript[-1]
    schema = schema_of(observation, last["tool_name"])
    if schema is None:
        return None
    return {"tool_name": schema["name"], "args": repair(last["args"], problem, schema)}


def schema_of(observation: Observation, tool_name: str) -> ToolSchema | None:
    """Return the schema of the tool ``tool_name``, if it is available."""
    return next(
        (schema for schema in observation["tool_schemas"] if schema["name"] == tool_name), None
    )


def repair(arguments: Mapping[str, Any], problem: Problem, schema: ToolSchema) -> JsonObject:
    """Return ``arguments``, corrected as ``problem`` states, with every required argument."""
    arguments_to_send = dict(arguments)
    details = problem["details"]
    match problem["code"]:
        case "unknown_argument":
            for name in details.get("unknown", ()):
                arguments_to_send.pop(name, None)
        case "missing_required_arg":
            for name in details.get("missing", ()):
                alias = _ALIASES.get(name)
                arguments_to_send[name] = (
                    arguments_to_send.pop(alias)
                    if alias in arguments_to_send
                    else default_of(schema, name)
                )
        case "invalid_argument_type":
            name = details.get("arg")
            if name in arguments_to_send:
                arguments_to_send[name] = cast_to(
                    details.get("expected", ""), arguments_to_send[name]
                )
    for name in schema["required"]:
        if name not in arguments_to_send:
            arguments_to_send[name] = default_of(schema, name)
    return arguments_to_send


def default_arguments(schema: ToolSchema) -> JsonObject:
    """Return a default for each required argument, in the order of the schema."""
    return {name: default_of(schema, name) for name in schema["required"]}


def default_of(schema: ToolSchema, name: str) -> Any:
    """Return the default of an argument, by its type."""
    return default_of_type(schema["properties"].get(name, {}).get("type"))


def default_of_type(word: object) -> Any:
    """Return the default of a JSON type, by its name."""
    return _DEFAULTS.get(str(word), _DEFAULTS["string"])()


def cast_to(word: str, value: Any) -> Any:
    """Convert ``value`` to the JSON type ``word``; return the default of the type if that fails."""
    try:
        match word:
            case "string":
                return str(value)
            case "integer":
                return int(value)
            case "number":
                return float(value)
            case "boolean":
                return _boolean(value)
    except (TypeError, ValueError, OverflowError):
        return default_of_type(word)
    return value


def _boolean(value: Any) -> bool:
    text = str(value).strip().lower()
    if text in {"true", "1", "yes"}:
        return True
    if text in {"false", "0", "no"}:
        return False
    raise ValueError(text)
