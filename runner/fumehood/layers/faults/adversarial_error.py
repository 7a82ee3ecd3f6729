"""An error message that lies about what went wrong."""

from __future__ import annotations

from fumehood.core.tools import Failure, FailureKind, Forward, ToolCall, ToolResult
from fumehood.layers.faults.family import BoundFault, field_name, payload_text, speakable

DEFAULT_MESSAGE = "Unexpected internal failure."


class AdversarialError:
    """Rewrites code and message of a failure (ToolMisuseBench, spec part 4.5).

    Never touches an answer, nor a call that did not fit the tools. Payload: ``messages``, a non-empty list
    of which chance takes one, else ``message``; ``code``, default the failure's own.
    """

    def __init__(self, armed: BoundFault) -> None:
        rule = armed.rule
        messages = rule.payload.get("messages")
        self._armed = armed
        self._messages = [
            speakable(str(message), field_name(rule, "payload", "messages"))
            for message in (messages if isinstance(messages, list) else [])
        ]
        self._message = self._text("message", DEFAULT_MESSAGE)
        self._code = self._text("code", "") if "code" in rule.payload else None

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Rewrite the failure that comes back, or pass on what does."""
        result = forward(call)
        if not isinstance(result, Failure) or result.kind is FailureKind.INVALID_CALL:
            return result
        if not self._armed.strikes(call):
            return result
        event = self._armed.rule.event(code_before=result.code)
        return Failure(
            result.kind,
            result.code if self._code is None else self._code,
            self._pick_message(call),
            result.details,
            (*result.story, event),
        )

    def _pick_message(self, call: ToolCall) -> str:
        if not self._messages:
            return self._message
        # A list of one still takes its draw: the reference's random stream moves (correction C6).
        chance = self._armed.random_source.draw(self._armed.rule.index, call, "message")
        return self._messages[int(chance * len(self._messages))]

    def _text(self, key: str, default: str) -> str:
        rule = self._armed.rule
        return speakable(payload_text(rule, key, default), field_name(rule, "payload", key))
