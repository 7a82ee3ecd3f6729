"""A tool that denies access."""

from __future__ import annotations

from dataclasses import replace

from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Failure, FailureKind, Forward, ToolCall, ToolResult
from fumehood.layers.faults.family import BoundFault, payload_text


class Authz:
    """Answers ``authz_denied`` in the tool's place (ToolMisuseBench, spec parts 4.4 and 4.7).

    Payload: ``required_role``, what the agent is told it lacks; ``required_token``, when not null, lets
    calls pass whose argument ``token_field`` (default ``token``) equals it; otherwise ``deny`` (default
    true) decides, null meaning no.
    """

    def __init__(self, armed: BoundFault) -> None:
        payload = armed.rule.payload
        self._armed = armed
        self._required_role = payload.get("required_role")
        self._required_token = payload.get("required_token")
        self._token_field = payload_text(armed.rule, "token_field", "token")
        self._deny = bool(payload.get("deny", True))

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Strike, or let the call pass."""
        if not self._armed.strikes(call) or self._allows(call):
            return forward(call)
        return Failure(
            FailureKind.FAULT,
            "authz_denied",
            "Authorization failed for this action.",
            {"required_role": self._required_role},
            (self._armed.rule.event(),),
        )

    def _allows(self, call: ToolCall) -> bool:
        if self._required_token is None:
            return not self._deny
        return call.arguments.get(self._token_field) == self._required_token


class AccessGate:
    """Answers ``authz_denied`` in the tool's place unless the call brings the token.

    As :class:`~fumehood.layers.faults.authz.Authz`, but keeps the token to itself instead of handing it to a tool
    that knows no such argument, and tells which argument it looks for: there, a gate with a token can never
    be passed (spec part 4.4). Payload: ``required_role``, what the agent is told it lacks; ``required_token``
    and ``token_field`` (default ``token``), what opens the gate; without a token nothing does.
    """

    def __init__(self, armed: BoundFault) -> None:
        payload = armed.rule.payload
        self._armed = armed
        self._required_role = payload.get("required_role")
        self._required_token = payload.get("required_token")
        self._token_field = payload_text(armed.rule, "token_field", "token")

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Deny, open the gate, or let the call pass."""
        if not self._armed.strikes(call):
            return forward(call)
        if (
            self._required_token is None
            or call.arguments.get(self._token_field) != self._required_token
        ):
            return self._deny()
        rest = {name: value for name, value in call.arguments.items() if name != self._token_field}
        result = forward(replace(call, arguments=rest))
        return replace(result, story=(self._armed.rule.event(delivered=rest), *result.story))

    def _deny(self) -> Failure:
        details: JsonObject = {"required_role": self._required_role}
        if self._required_token is not None:
            details["expected"] = [self._token_field]
        return Failure(
            FailureKind.FAULT,
            "authz_denied",
            "Authorization failed for this action.",
            details,
            (self._armed.rule.event(),),
        )
