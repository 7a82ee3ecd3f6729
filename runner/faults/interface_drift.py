"""A tool whose interface is no longer the published one, and which says so when it is called the old way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from runner.core.errors import SpecError
from runner.core.json_values import Json, JsonObject
from runner.core.tools import Failure, FailureKind, Forward, ToolCall, ToolResult
from runner.faults.payload import field_name, payload_object
from runner.faults.trigger import Armed

_ACCEPTED: Mapping[str, type] = {"string": str, "integer": int}


class InterfaceDrift:
    """Asks for the drifted arguments and hands the tool the published ones.

    The mirror image of :class:`~runner.faults.schema_drift.SchemaDrift`, with the same payload: an agent that
    reads the refusal and adapts succeeds, one that resends its old call does not (spec part 11.12).
    """

    def __init__(self, armed: Armed) -> None:
        rule = armed.rule
        self._armed = armed
        self._renames = _texts(armed, "rename_args")
        self._types = _texts(armed, "type_changes")
        self._additions = tuple(payload_object(rule, "add_required"))
        for name, kind in self._types.items():
            if kind not in _ACCEPTED:
                where = field_name(rule, "payload", "type_changes", name)
                raise SpecError(where, f"must be 'string' or 'integer', not {kind!r}")

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Refuse the old interface, translate the new one, or let the call pass."""
        if not self._armed.strikes(call):
            return forward(call)
        misfit = self._misfit(call.arguments)
        if misfit is not None:
            code, message, details = misfit
            event = self._armed.rule.event()
            return Failure(
                FailureKind.FAULT, code, message, {**details, "tool_name": call.tool_name}, (event,)
            )
        published = self._translate(call.arguments)
        result = forward(ToolCall(call.tool_name, published, call.number))
        return replace(result, story=(self._armed.rule.event(delivered=published), *result.story))

    def _misfit(self, arguments: Mapping[str, Json]) -> tuple[str, str, JsonObject] | None:
        outdated: list[Json] = [old for old in self._renames if old in arguments]
        if outdated:
            expected: list[Json] = [self._renames[str(old)] for old in outdated]
            return (
                "unknown_argument",
                "The tool has no such arguments any more.",
                {"unknown": outdated, "expected": expected},
            )
        missing: list[Json] = [name for name in self._additions if name not in arguments]
        if missing:
            return "missing_required_arg", "The tool asks for more arguments now.", {"missing": missing}
        for name, kind in self._types.items():
            if name in arguments and type(arguments[name]) is not _ACCEPTED[kind]:
                received = type(arguments[name]).__name__
                details: JsonObject = {"arg": name, "expected": kind, "received": received}
                return "invalid_argument_type", "The tool takes another type now.", details
        return None

    def _translate(self, arguments: Mapping[str, Json]) -> JsonObject:
        published_names = {new: old for old, new in self._renames.items()}
        published: JsonObject = {}
        for name, value in arguments.items():
            if name in self._additions:
                continue
            published[published_names.get(name, name)] = _undo(value, self._types.get(name))
        return published


def _texts(armed: Armed, key: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, value in payload_object(armed.rule, key).items():
        if not isinstance(value, str):
            raise SpecError(field_name(armed.rule, "payload", key, name), f"must be text, not {value!r}")
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
