"""Fault family ``authz``: a tool denies access, and names the argument that grants it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Failure, Forward, ToolCall, ToolResult
from fumehood.layers.faults.family import BoundFault, FaultFamily, described, payload_text


@dataclass(frozen=True, slots=True)
class AuthzPayload:
    """Which calls are admitted, and what the others read."""

    required_role: str | None = field(
        default=None, metadata=described("Role that a denied agent reads.")
    )
    required_token: str | None = field(
        default=None,
        metadata=described("Calls with this token pass; null means that no call passes."),
    )
    token_field: str = field(
        default="token", metadata=described("Argument that carries the token.")
    )


class Authz(FaultFamily):
    """Answers ``authz_denied`` in place of the tool unless the call carries the token.

    Unlike ToolMisuseBench's family, it removes the token before it forwards the call, and a denial
    names the argument. In ToolMisuseBench no call can pass such a check, because the tools reject
    the unknown argument.
    """

    order = 200
    payload = AuthzPayload
    example: ClassVar[JsonObject] = {"required_role": "admin", "required_token": "T"}
    remedy = "Send the token in the argument that the denial names; without a token, do not retry."
    check = "Require the token in the call that succeeded, and forbid calls that try other tokens."

    def __init__(self, fault: BoundFault) -> None:
        super().__init__(fault)
        payload = fault.rule.payload
        self._required_role = payload.get("required_role")
        self._required_token = payload.get("required_token")
        self._token_field = payload_text(fault.rule, "token_field", AuthzPayload().token_field)

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Deny the call, admit it without the token, or forward it unchanged."""
        if not self.fault.fires_on(call):
            return forward(call)
        if (
            self._required_token is None
            or call.arguments.get(self._token_field) != self._required_token
        ):
            return self._denial()
        rest = {name: value for name, value in call.arguments.items() if name != self._token_field}
        result = forward(replace(call, arguments=rest))
        fired = self.fault.rule.fired(arguments_after=rest)
        return replace(result, fired_faults=(fired, *result.fired_faults))

    def _denial(self) -> Failure:
        details: JsonObject = {"required_role": self._required_role}
        if self._required_token is not None:
            details["expected"] = [self._token_field]
        return self.fail("authz_denied", "Authorization failed for this action.", details)
