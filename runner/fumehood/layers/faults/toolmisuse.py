"""The two fault families that ToolMisuseBench defines differently: ``authz`` and ``schema_drift``.

Their rules are in ``docs/reference/toolmisuse.md``, Faults. Payloads are open objects.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_json, copy_object
from fumehood.core.tools import Forward, ToolCall, ToolResult
from fumehood.layers.faults.family import BoundFault, FaultFamily, payload_object, payload_text


class ToolMisuseAuthz(FaultFamily):
    """Answers ``authz_denied`` in place of the tool.

    Payload: ``required_role``, shown in the denial; ``required_token``, if not null, admits calls
    whose argument ``token_field`` (default ``token``) equals it; without a token ``deny``
    (default true) decides, and null means no.
    """

    order = 200
    example: ClassVar[JsonObject] = {"required_role": "admin"}

    def __init__(self, fault: BoundFault) -> None:
        super().__init__(fault)
        payload = fault.rule.payload
        self._required_role = payload.get("required_role")
        self._required_token = payload.get("required_token")
        self._token_field = payload_text(fault.rule, "token_field", "token")
        self._deny = bool(payload.get("deny", True))

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Fire, or forward the call."""
        if not self.fault.fires_on(call) or self._admits(call):
            return forward(call)
        details: JsonObject = {"required_role": self._required_role}
        return self.fail("authz_denied", "Authorization failed for this action.", details)

    def _admits(self, call: ToolCall) -> bool:
        if self._required_token is None:
            return not self._deny
        return call.arguments.get(self._token_field) == self._required_token


class ToolMisuseSchemaDrift(FaultFamily):
    """Renames, retypes and adds arguments of the agent's call.

    Payload, applied in this order: ``rename_args`` {old: new}; ``type_changes`` {argument: "string"
    or "integer"}, by the names after renaming; ``add_required`` {argument: value}, where absent.
    The fault counts as fired whenever its trigger holds, even if nothing changed. It is the
    outermost fault layer, because all other families see the changed call.
    """

    order = 50
    example: ClassVar[JsonObject] = {
        "rename_args": {"path": "file_path"},
        "add_required": {"extra": [1]},
    }

    def __init__(self, fault: BoundFault) -> None:
        super().__init__(fault)
        rule = fault.rule
        self._renames = payload_object(rule, "rename_args")
        self._casts = payload_object(rule, "type_changes")
        self._additions = payload_object(rule, "add_required")
        for old, new in self._renames.items():
            if not isinstance(new, str):
                raise SpecError(
                    rule.location("payload", "rename_args", old), f"must be text, not {new!r}"
                )

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward a changed call, or the call as it is."""
        if not self.fault.fires_on(call):
            return forward(call)
        arguments = self._change(copy_object(call.arguments))
        result = forward(replace(call, arguments=arguments))
        fired = self.fault.rule.fired(arguments_after=arguments)
        return replace(result, fired_faults=(fired, *result.fired_faults))

    def _change(self, arguments: JsonObject) -> JsonObject:
        for old, new in self._renames.items():
            if old in arguments:
                value = arguments.pop(old)
                # Inserting it again moves the argument to the end, which later error messages show.
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
