"""Fault family ``lost_reply``: the tool executes a call, and its reply is lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Failure, FailureKind, Forward, ToolCall, ToolResult
from fumehood.layers.faults.family import FaultFamily, described, payload_of


@dataclass(frozen=True, slots=True)
class LostReplyPayload:
    """What the agent reads instead of the reply."""

    timeout_ms: int = field(
        default=1000,
        metadata=described("Waiting time that the agent reads, milliseconds.", minimum=0),
    )


class LostReply(FaultFamily):
    """Answers ``timeout`` after the tool has executed the call.

    Agents see the same error as from ``timeout``, where the tool did not receive the call.
    """

    order = 410
    payload = LostReplyPayload
    example: ClassVar[JsonObject] = {"timeout_ms": 5}
    remedy = "Read the state back before repeating the call, or use an idempotency key."

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call, and replace the result if the fault fires."""
        fires = self.fault.fires_on(call)
        result = forward(call)
        if not fires:
            return result
        timeout_ms = payload_of(self.fault.rule, LostReplyPayload).timeout_ms
        return self.fired(
            Failure(
                FailureKind.REPLY_LOST,
                "timeout",
                "Tool call timed out.",
                {"timeout_ms": timeout_ms},
                result.fired_faults,
            )
        )
