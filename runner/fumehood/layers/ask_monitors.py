"""Lets the monitors of the run decide about each call, before and after it is executed."""

from __future__ import annotations

from dataclasses import replace

from fumehood.core.tools import Forward, ToolCall, ToolResult, Value
from fumehood.monitors.monitor import Action, Decision, Stage, Step
from fumehood.monitors.watch import Watch, failure_to_json, refused_call

_CONTINUES = (Action.ALLOW, Action.MODIFY)


class AskMonitors:
    """Inside ``ChargeBudget``, so that a refused call is charged like any failed call, and outside
    the virtual time, the faults and the world, so that it has no effect there."""

    def __init__(self, seat: str, watch: Watch) -> None:
        """Create the layer.

        Args:
            seat: name of the calling seat.
            watch: asks the monitors of the episode.
        """
        self._seat = seat
        self._watch = watch

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Ask before the call, forward it, and ask about its result.

        Raises:
            MonitorsBroken: a monitor failed, and failed its health check too.
        """
        decision = self._ask(call)
        if decision.action not in _CONTINUES:
            return refused_call(decision)
        if decision.arguments is not None:
            call = replace(call, arguments=decision.arguments)
        result = forward(call)
        decision = self._ask(call, result)
        if decision.action not in _CONTINUES:
            return refused_call(decision, executed=result)
        if decision.output is not None:
            return Value(decision.output, result.fired_faults)
        return result

    def _ask(self, call: ToolCall, result: ToolResult | None = None) -> Decision:
        is_value = isinstance(result, Value)
        return self._watch.ask(
            Step(
                seat=self._seat,
                number=call.number,
                stage=Stage.BEFORE if result is None else Stage.AFTER,
                tool=call.tool_name,
                arguments=dict(call.arguments),
                output=result.output if isinstance(result, Value) else None,
                failure=None if result is None or is_value else failure_to_json(result),  # type: ignore[arg-type]
            )
        )
