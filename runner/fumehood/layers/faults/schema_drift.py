"""A call that is altered on its way to the tool, while the published schema stays what it was."""

from __future__ import annotations

from dataclasses import replace

from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_json, copy_object
from fumehood.core.tools import Forward, ToolCall, ToolResult
from fumehood.layers.faults.payload import field_name, payload_object
from fumehood.layers.faults.trigger import BoundFault


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
