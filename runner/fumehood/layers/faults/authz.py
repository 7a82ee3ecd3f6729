"""A tool that denies access."""

from __future__ import annotations

from fumehood.core.tools import Failure, FailureKind, Forward, ToolCall, ToolResult
from fumehood.layers.faults.payload import payload_text
from fumehood.layers.faults.trigger import BoundFault


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
