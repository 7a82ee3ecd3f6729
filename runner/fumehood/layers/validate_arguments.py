"""Checks calls against the available tools and their JSON Schemas."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache

from jsonschema_rs import Draft202012Validator, ValidationError, ValidationErrorKind

from fumehood.core.conversation import TurnQueue
from fumehood.core.json_values import Json, JsonObject, ordered_json, type_word
from fumehood.core.tools import Failure, FailureKind, Forward, ToolCall, ToolResult, ToolSpec


class RestrictTools:
    """Rejects calls of tools that the seat does not have in this turn."""

    def __init__(
        self, tools: tuple[ToolSpec, ...], turns: TurnQueue, *, early: bool = False
    ) -> None:
        """Create the layer.

        Args:
            tools: all tools of the world.
            turns: of the seat; states which tools are hidden.
            early: whether a tool of a later turn can already be called, as in benchmarks that hide
                tools only in the messages. A tool of another seat can never be called.
        """
        self._names = tuple(tool.name for tool in tools)
        self._turns = turns
        self._early = frozenset(self._names) - turns.withheld if early else frozenset[str]()

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward a call of an available tool, reject any other."""
        available = [name for name in self._names if name not in self._turns.hidden]
        if call.tool_name in available or call.tool_name in self._early:
            return forward(call)
        return unknown_tool(call.tool_name, available)


def unknown_tool(name: str, available: Iterable[str]) -> Failure:
    """Return the failure of a call of an unknown tool."""
    details: JsonObject = {"tool_name": name, "available": list(available)}
    return Failure(FailureKind.INVALID_CALL, "unknown_tool", "There is no such tool.", details)


class ValidateArguments:
    """Rejects calls of unknown tools and calls that do not match the schema of their tool.

    The error codes are those of ToolMisuseBench, and ``invalid_argument`` for schema rules that it
    does not have.
    """

    def __init__(self, tools: tuple[ToolSpec, ...]) -> None:
        self._validators = {tool.name: _validator(ordered_json(tool.parameters)) for tool in tools}

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward a valid call, reject an invalid one."""
        validator = self._validators.get(call.tool_name)
        if validator is None:
            return unknown_tool(call.tool_name, self._validators)
        arguments = dict(call.arguments)
        if validator.is_valid(arguments):
            return forward(call)
        return _explain(call.tool_name, list(validator.iter_errors(arguments)))


@lru_cache(maxsize=1024)
def _validator(schema_json: str) -> Draft202012Validator:
    # Many episodes share a few tools, and compiling a schema takes longer than a call.
    return Draft202012Validator(json.loads(schema_json))


def _explain(tool_name: str, errors: Sequence[ValidationError]) -> Failure:
    """Describe missing arguments first, then unknown ones, then invalid values."""
    about: JsonObject = {"tool_name": tool_name}
    missing: list[Json] = [
        error.kind.property
        for error in errors
        if isinstance(error.kind, ValidationErrorKind.Required)
    ]
    if missing:
        return _invalid(
            "missing_required_arg", "Arguments are missing.", {"missing": missing, **about}
        )
    unknown: list[Json] = [
        name
        for error in errors
        if isinstance(error.kind, ValidationErrorKind.AdditionalProperties)
        for name in error.kind.unexpected
    ]
    if unknown:
        return _invalid(
            "unknown_argument", "There are no such arguments.", {"unknown": unknown, **about}
        )
    return _explain_value(errors[0], about)


def _explain_value(error: ValidationError, about: JsonObject) -> Failure:
    argument = ".".join(str(step) for step in error.instance_path)
    if isinstance(error.kind, ValidationErrorKind.Type):
        expected = " or ".join(error.kind.types)
        details: JsonObject = {
            "arg": argument,
            "expected": expected,
            "received": type_word(error.instance),
        }
        return _invalid(
            "invalid_argument_type", "An argument has the wrong type.", {**details, **about}
        )
    rule = str(error.schema_path[-1])
    return _invalid(
        "invalid_argument", "An argument is not allowed.", {"arg": argument, "rule": rule, **about}
    )


def _invalid(code: str, message: str, details: JsonObject) -> Failure:
    return Failure(FailureKind.INVALID_CALL, code, message, details)
