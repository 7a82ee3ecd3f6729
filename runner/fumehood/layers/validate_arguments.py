"""Checks a call against its tool's JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache

from jsonschema_rs import Draft202012Validator, ValidationError, ValidationErrorKind

from fumehood.core.conversation import TurnQueue
from fumehood.core.json_values import Json, JsonObject, ordered_json, type_word
from fumehood.core.tools import Failure, FailureKind, Forward, ToolCall, ToolResult, ToolSpec


class RestrictTools:
    """A tool that comes with a later turn is, until then, like one that does not exist."""

    def __init__(
        self, tools: tuple[ToolSpec, ...], script: TurnQueue, *, early: bool = False
    ) -> None:
        """Stand ready.

        Args:
            tools: of the world, in their order.
            script: of the seat; says which of them are still hidden.
            early: whether a tool of a later turn that is called all the same is there, as in benchmarks that
                hide tools in what they tell an agent and nowhere else. Another seat's tool never is.
        """
        self._names = tuple(tool.name for tool in tools)
        self._script = script
        self._early = frozenset(self._names) - script.withheld if early else frozenset[str]()

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward a call of a tool on offer, answer any other."""
        shown = [name for name in self._names if name not in self._script.hidden]
        if call.tool_name in shown or call.tool_name in self._early:
            return forward(call)
        return unknown_tool(call.tool_name, shown)


def unknown_tool(name: str, available: Iterable[str]) -> Failure:
    """Return what a call of a tool that is not there gets."""
    details: JsonObject = {"tool_name": name, "available": list(available)}
    return Failure(FailureKind.INVALID_CALL, "unknown_tool", "There is no such tool.", details)


class ValidateArguments:
    """Answers for the tools when a call names none of them or does not fit its schema.

    Codes are those of ToolMisuseBench, so that agents need one vocabulary, plus ``invalid_argument`` for
    rules that its schemas do not have.
    """

    def __init__(self, tools: tuple[ToolSpec, ...]) -> None:
        self._validators = {tool.name: _validator(ordered_json(tool.parameters)) for tool in tools}

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward a call that fits, answer one that does not."""
        validator = self._validators.get(call.tool_name)
        if validator is None:
            return unknown_tool(call.tool_name, self._validators)
        arguments = dict(call.arguments)
        if validator.is_valid(arguments):
            return forward(call)
        return _explain(call.tool_name, list(validator.iter_errors(arguments)))


@lru_cache(maxsize=1024)
def _validator(schema_json: str) -> Draft202012Validator:
    # Many episodes share few tools, and compiling a schema costs more than a call.
    return Draft202012Validator(json.loads(schema_json))


def _explain(tool_name: str, misfits: Sequence[ValidationError]) -> Failure:
    """Say the most basic thing that is wrong: what is missing, else too much, else misfits."""
    about: JsonObject = {"tool_name": tool_name}
    missing: list[Json] = [
        misfit.kind.property
        for misfit in misfits
        if isinstance(misfit.kind, ValidationErrorKind.Required)
    ]
    if missing:
        return _invalid(
            "missing_required_arg", "Arguments are missing.", {"missing": missing, **about}
        )
    unknown: list[Json] = [
        name
        for misfit in misfits
        if isinstance(misfit.kind, ValidationErrorKind.AdditionalProperties)
        for name in misfit.kind.unexpected
    ]
    if unknown:
        return _invalid(
            "unknown_argument", "There are no such arguments.", {"unknown": unknown, **about}
        )
    return _explain_value(misfits[0], about)


def _explain_value(misfit: ValidationError, about: JsonObject) -> Failure:
    argument = ".".join(str(step) for step in misfit.instance_path)
    if isinstance(misfit.kind, ValidationErrorKind.Type):
        expected = " or ".join(misfit.kind.types)
        details: JsonObject = {
            "arg": argument,
            "expected": expected,
            "received": type_word(misfit.instance),
        }
        return _invalid(
            "invalid_argument_type", "An argument has the wrong type.", {**details, **about}
        )
    rule = str(misfit.schema_path[-1])
    return _invalid(
        "invalid_argument", "An argument is not allowed.", {"arg": argument, "rule": rule, **about}
    )


def _invalid(code: str, message: str, details: JsonObject) -> Failure:
    return Failure(FailureKind.INVALID_CALL, code, message, details)
