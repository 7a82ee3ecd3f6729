"""Fault family ``out_of_order``: a call takes effect after the call that follows it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Forward, ToolCall, ToolResult, Value
from fumehood.layers.faults.family import BoundFault, FaultFamily, described, payload_of


@dataclass(frozen=True, slots=True)
class OutOfOrderPayload:
    """What the agent reads, and how long the call is held back."""

    status: str = field(
        default="accepted", metadata=described("Status that the agent reads for the held call.")
    )
    after_calls: int = field(
        default=1,
        metadata=described(
            "Number of later calls after which the held call takes effect.", minimum=1
        ),
    )


class OutOfOrder(FaultFamily):
    """Accepts a call, and executes it after later ones.

    A call that is held back at the end of the episode never takes effect.
    """

    order = 430
    payload = OutOfOrderPayload
    example: ClassVar[JsonObject] = {"after_calls": 1}
    remedy = "Read the state back before depending on a call that was only accepted."
    check = "Require the state that follows from the right order, or a look before the next change."
    delivers_again = True

    def __init__(self, fault: BoundFault) -> None:
        super().__init__(fault)
        self._settings = payload_of(fault.rule, OutOfOrderPayload)
        self._held: list[tuple[int, ToolCall, Forward]] = []
        """Calls that are held back, each with the number of later calls to wait for, and the inner
        layers of its seat."""

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Hold the call back if the fault fires, or forward it and then the calls that are due."""
        if self.fault.fires_on(call):
            self._held.append((self._settings.after_calls, call, forward))
            return self.fired(Value({"status": self._settings.status}))
        result = forward(call)
        waiting = [(left - 1, held, deliver) for left, held, deliver in self._held]
        self._held = [entry for entry in waiting if entry[0] > 0]
        for left, held, deliver in waiting:
            if left == 0:
                sent_as = held.number if held.held_from is None else held.held_from
                deliver(replace(held, number=call.number, held_from=sent_as))
        return result
