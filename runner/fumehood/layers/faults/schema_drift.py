"""A call that is altered on its way to the tool, while the published schema stays what it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_json, copy_object, type_word
from fumehood.core.tools import Failure, FailureKind, Forward, ToolCall, ToolResult
from fumehood.layers.faults.family import BoundFault, field_name, payload_object


class SchemaDrift:
    """Renames, retypes and adds arguments of the agent's call (ToolMisuseBench, spec part 4.3).

    Payload, applied in this order: ``rename_args`` {old: new}; ``type_changes`` {argument: "string" or
    "integer"}, by names after renaming; ``add_required`` {argument: value}, where absent. The delivery is
    recorded whenever the trigger holds, even if nothing changed.
    """

    def __init__(self, armed: BoundFault) -> None:
        rule = armed.rule
        self._armed = armed
        self._renames = payload_object(rule, "rename_args")
        self._casts = payload_object(rule, "type_changes")
        self._additions = payload_object(rule, "add_required")
        for old, new in self._renames.items():
            if not isinstance(new, str):
                raise SpecError(
                    field_name(rule, "payload", "rename_args", old), f"must be text, not {new!r}"
                )

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Pass an altered call on, or the call as it is."""
        if not self._armed.strikes(call):
            return forward(call)
        delivered = self._alter(copy_object(call.arguments))
        result = forward(replace(call, arguments=delivered))
        event = self._armed.rule.event(delivered=delivered)
        return replace(result, story=(event, *result.story))

    def _alter(self, arguments: JsonObject) -> JsonObject:
        for old, new in self._renames.items():
            if old in arguments:
                value = arguments.pop(old)
                # Putting it in again moves the argument to the end, which later error messages show.
                arguments.pop(str(new), None)
                arguments[str(new)] = value
        for name, kind in self._casts.items():
            if name in arguments:
                arguments[name] = _cast(arguments[name], kind)
        for name, value in self._additions.items():
            if name not in arguments:
                arguments[name] = copy_json(value)
        return arguments


def _cast(value: Json, kind: Json) -> Json:
    if kind == "string":
        return str(value)
    if kind == "integer":
        try:
            return int(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            return value
    return value


_RETYPED = ("string", "integer")


class InterfaceDrift:
    """Asks for the drifted arguments and hands the tool the published ones.

    The mirror image of :class:`~fumehood.layers.faults.schema_drift.SchemaDrift`, with the same payload: an agent that
    reads the refusal and adapts succeeds, one that resends its old call does not (spec part 11.12). A drift
    to which no call could be adapted is refused when the episode is opened.
    """

    def __init__(self, armed: BoundFault) -> None:
        self._armed = armed
        self._renames = _texts(armed, "rename_args")
        self._published = {new: old for old, new in self._renames.items()}
        self._types = _texts(armed, "type_changes")
        self._additions = {
            name: type_word(value)
            for name, value in payload_object(armed.rule, "add_required").items()
        }
        self._refuse_contradictions()

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Refuse the old interface, translate the new one, or let the call pass."""
        if not self._armed.strikes(call):
            return forward(call)
        refusal = self._refusal(call.arguments)
        if refusal is not None:
            code, message, details = refusal
            details["tool_name"] = call.tool_name
            return Failure(FailureKind.FAULT, code, message, details, (self._armed.rule.event(),))
        published = self._translate(call.arguments)
        result = forward(replace(call, arguments=published))
        event = self._armed.rule.event(delivered=published)
        return replace(self._in_new_words(result), story=(event, *result.story))

    def _refuse_contradictions(self) -> None:
        taken: set[str] = set()
        for old, new in self._renames.items():
            if new in self._renames or new in taken:
                raise self._error("rename_args", old, f"{new!r} cannot stand for two arguments")
            taken.add(new)
        for name in self._additions:
            if name in self._renames or name in taken:
                raise self._error("add_required", name, "a renamed argument has this name")
        for name, kind in self._types.items():
            if kind not in _RETYPED:
                raise self._error(
                    "type_changes", name, f"must be 'string' or 'integer', not {kind!r}"
                )
            if name in self._renames:
                raise self._error(
                    "type_changes", name, f"is called {self._renames[name]!r} after renaming"
                )

    def _error(self, key: str, name: str, message: str) -> SpecError:
        return SpecError(field_name(self._armed.rule, "payload", key, name), message)

    def _refusal(self, arguments: Mapping[str, Json]) -> tuple[str, str, JsonObject] | None:
        outdated: list[Json] = [old for old in self._renames if old in arguments]
        if outdated:
            expected: list[Json] = [self._renames[str(old)] for old in outdated]
            told: JsonObject = {"unknown": outdated, "expected": expected}
            return "unknown_argument", "The tool has no such arguments any more.", told
        missing: list[Json] = [name for name in self._additions if name not in arguments]
        if missing:
            types: JsonObject = {str(name): self._additions[str(name)] for name in missing}
            told = {"missing": missing, "types": types}
            return "missing_required_arg", "The tool asks for more arguments now.", told
        for name, kind in {**self._types, **self._additions}.items():
            received = type_word(arguments[name]) if name in arguments else kind
            if received != kind and (received, kind) != ("integer", "number"):
                told = {"arg": name, "expected": kind, "received": received}
                return "invalid_argument_type", "The tool takes another type now.", told
        return None

    def _translate(self, arguments: Mapping[str, Json]) -> JsonObject:
        return {
            self._published.get(name, name): _undo(value, self._types.get(name))
            for name, value in arguments.items()
            if name not in self._additions
        }

    def _in_new_words(self, result: ToolResult) -> ToolResult:
        """Let a refusal that comes from behind name the arguments as they are called now."""
        if not isinstance(result, Failure) or result.kind is not FailureKind.INVALID_CALL:
            return result
        details = dict(result.details)
        missing, argument = details.get("missing"), details.get("arg")
        if isinstance(missing, list):
            details["missing"] = [self._renames.get(str(name), name) for name in missing]
        if isinstance(argument, str):
            details["arg"] = self._renames.get(argument, argument)
        return replace(result, details=details)


def _texts(armed: BoundFault, key: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, value in payload_object(armed.rule, key).items():
        if not isinstance(value, str):
            raise SpecError(
                field_name(armed.rule, "payload", key, name), f"must be text, not {value!r}"
            )
        texts[name] = value
    return texts


def _undo(value: Json, kind: str | None) -> Json:
    """Give a retyped value its published type back; the schema check behind judges what cannot be."""
    if kind == "integer":
        return str(value)
    if kind == "string":
        try:
            return int(str(value))
        except ValueError:
            return value
    return value
