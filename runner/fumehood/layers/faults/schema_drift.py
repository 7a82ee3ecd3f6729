"""Fault family ``schema_drift``: a tool's interface differs from the published one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from fumehood.core.errors import SpecError, nearest
from fumehood.core.fault_plan import FaultRule
from fumehood.core.json_values import Json, JsonObject, type_word
from fumehood.core.tools import Failure, FailureKind, Forward, ToolCall, ToolResult, ToolSpec
from fumehood.layers.faults.family import BoundFault, FaultFamily, described, payload_object

_NEW_TYPES = ("string", "integer")


@dataclass(frozen=True, slots=True)
class SchemaDriftPayload:
    """How the interface differs from the published one; at least one difference."""

    rename_args: dict[str, str] = field(
        default_factory=dict, metadata=described("Published argument name → actual name.")
    )
    type_changes: dict[str, Literal["string", "integer"]] = field(
        default_factory=dict, metadata=described("Actual argument name → actual type.")
    )
    add_required: dict[str, Any] = field(
        default_factory=dict,
        metadata=described("Additional required argument → an example value of its type."),
    )


class SchemaDrift(FaultFamily):
    """Requires the changed arguments and forwards the published ones to the tool.

    An agent that reads the error and adapts succeeds; an agent that repeats its call does not.
    ToolMisuseBench's family works the other way round: it changes a correct call.
    """

    order = 500
    payload = SchemaDriftPayload
    example: ClassVar[JsonObject] = {"rename_args": {"path": "file_path"}}
    remedy = "Read the actual arguments in the error, and adapt the call."
    check = "Require the effect; the published arguments never have it."

    def __init__(self, fault: BoundFault) -> None:
        super().__init__(fault)
        self._renames = _texts(fault.rule, "rename_args")
        self._published = {new: old for old, new in self._renames.items()}
        self._types = _texts(fault.rule, "type_changes")
        self._additions = {
            name: type_word(value)
            for name, value in payload_object(fault.rule, "add_required").items()
        }
        self._reject_contradictions()

    @classmethod
    def check_tools(cls, rule: FaultRule, tools: Sequence[ToolSpec]) -> None:
        """Reject a drift of arguments that no tool has, because it would change nothing."""
        arguments = {name for tool in tools for name in _properties(tool)}
        renames = payload_object(rule, "rename_args")
        _reject_unknown(rule, "rename_args", arguments)
        new_names = {str(name) for name in renames.values()}
        _reject_unknown(rule, "type_changes", arguments - renames.keys() | new_names)
        if not any(
            rule.payload.get(key) for key in ("rename_args", "type_changes", "add_required")
        ):
            raise SpecError(
                rule.location("payload"),
                "changes nothing; give rename_args, type_changes or add_required",
            )

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Reject the published interface, translate the changed one, or forward the call."""
        if not self.fault.fires_on(call):
            return forward(call)
        rejection = self._rejection(call.arguments)
        if rejection is not None:
            code, message, details = rejection
            details["tool_name"] = call.tool_name
            return self.fail(code, message, details)
        published = self._translate(call.arguments)
        result = forward(replace(call, arguments=published))
        fired = self.fault.rule.fired(arguments_after=published)
        return replace(self._with_new_names(result), fired_faults=(fired, *result.fired_faults))

    def changed_schema(self, parameters: JsonObject) -> JsonObject:
        """Return the JSON Schema of the arguments as the tool takes them now."""
        properties, required = parameters.get("properties"), parameters.get("required")
        published = properties if isinstance(properties, dict) else {}
        renamed: JsonObject = {
            self._renames.get(name, name): schema for name, schema in published.items()
        }
        names = [str(name) for name in required] if isinstance(required, list) else []
        for name, kind in {**self._types, **self._additions}.items():
            if name in renamed or name in self._additions:
                renamed[name] = {"type": kind}
        needed: list[Json] = [self._renames.get(name, name) for name in names]
        return {
            **parameters,
            "properties": renamed,
            "required": [*needed, *(name for name in self._additions)],
        }

    def _reject_contradictions(self) -> None:
        used: set[str] = set()
        for old, new in self._renames.items():
            if new in self._renames or new in used:
                raise self._error("rename_args", old, f"{new!r} is the name of two arguments")
            used.add(new)
        for name in self._additions:
            if name in self._renames or name in used:
                raise self._error("add_required", name, "a renamed argument has this name")
        for name, kind in self._types.items():
            if kind not in _NEW_TYPES:
                raise self._error(
                    "type_changes", name, f"must be 'string' or 'integer', not {kind!r}"
                )
            if name in self._renames:
                raise self._error(
                    "type_changes", name, f"is called {self._renames[name]!r} after renaming"
                )

    def _error(self, key: str, name: str, message: str) -> SpecError:
        return SpecError(self.fault.rule.location("payload", key, name), message)

    def _rejection(self, arguments: Mapping[str, Json]) -> tuple[str, str, JsonObject] | None:
        outdated: list[Json] = [old for old in self._renames if old in arguments]
        if outdated:
            expected: list[Json] = [self._renames[str(old)] for old in outdated]
            details: JsonObject = {"unknown": outdated, "expected": expected}
            return "unknown_argument", "The tool has no such arguments any more.", details
        missing: list[Json] = [name for name in self._additions if name not in arguments]
        if missing:
            types: JsonObject = {str(name): self._additions[str(name)] for name in missing}
            details = {"missing": missing, "types": types}
            return "missing_required_arg", "The tool asks for more arguments now.", details
        for name, kind in {**self._types, **self._additions}.items():
            received = type_word(arguments[name]) if name in arguments else kind
            if received != kind and (received, kind) != ("integer", "number"):
                details = {"arg": name, "expected": kind, "received": received}
                return "invalid_argument_type", "The tool takes another type now.", details
        return None

    def _translate(self, arguments: Mapping[str, Json]) -> JsonObject:
        return {
            self._published.get(name, name): _published_type(value, self._types.get(name))
            for name, value in arguments.items()
            if name not in self._additions
        }

    def _with_new_names(self, result: ToolResult) -> ToolResult:
        """Replace published argument names in an error by the names now."""
        if not isinstance(result, Failure) or result.kind is not FailureKind.INVALID_CALL:
            return result
        details = dict(result.details)
        missing, argument = details.get("missing"), details.get("arg")
        if isinstance(missing, list):
            details["missing"] = [self._renames.get(str(name), name) for name in missing]
        if isinstance(argument, str):
            details["arg"] = self._renames.get(argument, argument)
        return replace(result, details=details)


def _texts(rule: FaultRule, key: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, value in payload_object(rule, key).items():
        if not isinstance(value, str):
            raise SpecError(rule.location("payload", key, name), f"must be text, not {value!r}")
        texts[name] = value
    return texts


def _properties(tool: ToolSpec) -> Mapping[str, object]:
    properties = tool.parameters.get("properties", {})
    return properties if isinstance(properties, dict) else {}


def _reject_unknown(rule: FaultRule, key: str, known: set[str]) -> None:
    for name in payload_object(rule, key):
        if name not in known:
            raise SpecError(
                rule.location("payload", key, name),
                f"no tool has this argument; {nearest(name, sorted(known))}",
            )


def _published_type(value: Json, kind: str | None) -> Json:
    """Convert a value of the new type back. The schema check rejects what cannot be converted."""
    if kind == "integer":
        return str(value)
    if kind == "string":
        try:
            return int(str(value))
        except ValueError:
            return value
    return value
