"""Corrects the arguments of a call as its error states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fumehood_agent.builtin.schema_repair import cast_to, default_of, default_of_type
from fumehood_agent.observation import Problem, ToolSchema
from fumehood_agent.seat import JsonObject


def repair_arguments(sent: Mapping[str, Any], problem: Problem, schema: ToolSchema) -> JsonObject:
    """Return the corrected arguments; equal to ``sent`` if the error names nothing to correct.

    Args:
        sent: the arguments of the failed call.
        problem: the error. Its details may contain ``unknown`` (arguments that the tool does not
            accept) with ``expected`` (their new names); ``missing`` (required arguments) with
            ``types``; or ``arg`` (an argument of the wrong type) with ``expected`` (the right
            type).
        schema: of the tool, as published.
    """
    details = problem["details"]
    unknown, missing = _names(details.get("unknown")), _names(details.get("missing"))
    renamed = dict(zip(unknown, _names(details.get("expected")), strict=False))
    arguments = {
        renamed.get(name, name): value
        for name, value in sent.items()
        if name in renamed or name not in unknown or name in schema["properties"]
    }
    types = details.get("types")
    for name in missing:
        if name not in arguments:
            kind = types.get(name) if isinstance(types, dict) else None
            arguments[name] = default_of_type(kind) if kind else default_of(schema, name)
    argument, word = details.get("arg"), details.get("expected")
    if isinstance(word, str) and argument in arguments:
        arguments[argument] = cast_to(word, arguments[argument])
    return arguments


def fits(arguments: Mapping[str, Any], schema: ToolSchema) -> bool:
    """Return whether ``arguments`` match the published schema."""
    properties = schema["properties"]
    if any(name not in arguments for name in schema["required"]):
        return False
    if not schema["additionalProperties"] and any(name not in properties for name in arguments):
        return False
    return all(_is_of_type(value, properties.get(name, {})) for name, value in arguments.items())


def _is_of_type(value: Any, schema: Mapping[str, Any]) -> bool:
    match schema.get("type"):
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case str(word):
            return type(cast_to(word, value)) is type(value)
    return True


def _names(value: Any) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list) else []
