"""Fault family ``lost_reply``: the tool executes a call, and its reply is lost."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fumehood.core.tools import FailureKind, Forward, ToolCall, ToolResult
from fumehood.layers.faults.timeout import Timeout, TimeoutPayload


@dataclass(frozen=True, slots=True)
class LostReplyPayload(TimeoutPayload):
    """What the agent reads instead of the reply."""


class LostReply(Timeout):
    """Answers ``timeout`` after the tool has executed the call.

    Agents see the same error as from ``timeout``, where the tool did not receive the call.
    """

    order = 410
    payload = LostReplyPayload
    remedy = "Read the state back before repeating the call, or use an idempotency key."
    check = (
        "Require the effect exactly once: repeating without a look gives two, giving up "
        "may give none."
    )

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call, and replace the result if the fault fires."""
        fires = self.fault.fires_on(call)
        result = forward(call)
        if not fires:
            return result
        return replace(
            self.timed_out(),
            kind=FailureKind.REPLY_LOST,
            fired_faults=self.fired(result).fired_faults,
        )
