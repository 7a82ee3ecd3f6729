"""Fault family ``adversarial_error``: an error message that misstates what went wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Failure, FailureKind, Forward, ToolCall, ToolResult
from fumehood.layers.faults.family import (
    BoundFault,
    FaultFamily,
    described,
    encodable_text,
    payload_text,
)


@dataclass(frozen=True, slots=True)
class AdversarialErrorPayload:
    """What replaces the true code and message."""

    messages: list[str] | None = field(
        default=None, metadata=described("One of these messages is drawn at random.", min_length=1)
    )
    message: str = field(
        default="Unexpected internal failure.",
        metadata=described("Message where there are no messages."),
    )
    code: str | None = field(
        default=None, metadata=described("Error code; null keeps the original code.")
    )


class AdversarialError(FaultFamily):
    """Rewrites code and message of a failure (docs/reference/toolmisuse.md, Fault families).

    It never changes a value or the failure of a call that did not fit the tools.
    """

    order = 100
    rewrites_results = True
    payload = AdversarialErrorPayload
    example: ClassVar[JsonObject] = {"messages": ["one", "two"], "code": "E1"}
    remedy = "Do not trust code, message and details; check the state with another call."
    check = (
        "Require the effect in the state: an agent that believes the message repeats or drops it."
    )

    def __init__(self, fault: BoundFault) -> None:
        super().__init__(fault)
        rule = fault.rule
        messages = rule.payload.get("messages")
        self._messages = [
            encodable_text(str(message), rule.location("payload", "messages"))
            for message in (messages if isinstance(messages, list) else [])
        ]
        self._message = self._text("message", AdversarialErrorPayload().message)
        self._code = self._text("code", "") if "code" in rule.payload else None

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call, and rewrite the result if it is a failure."""
        result = forward(call)
        if not isinstance(result, Failure) or result.kind is FailureKind.INVALID_CALL:
            return result
        if not self.fault.fires_on(call):
            return result
        fired = self.fault.rule.fired(code_before=result.code)
        return Failure(
            result.kind,
            result.code if self._code is None else self._code,
            self._pick_message(call),
            result.details,
            (*result.fired_faults, fired),
        )

    def _pick_message(self, call: ToolCall) -> str:
        if not self._messages:
            return self._message
        # A list of one also takes a draw, because each draw advances ToolMisuseBench's random
        # stream.
        draw = self.fault.random_source.draw(self.fault.rule.index, call, "message")
        return self._messages[int(draw * len(self._messages))]

    def _text(self, key: str, default: str) -> str:
        rule = self.fault.rule
        return encodable_text(payload_text(rule, key, default), rule.location("payload", key))
