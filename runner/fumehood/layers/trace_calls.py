"""Records every call in the trace: request, result, charges and state digest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fumehood.core.clock import Clock
from fumehood.core.json_values import digest_json
from fumehood.core.ledger import Amounts, BudgetKind, ChargedBy, Ledger
from fumehood.core.policy import gate_of_invalid_approval
from fumehood.core.received import are_usual
from fumehood.core.shared_time import WorkEnded
from fumehood.core.tools import Forward, ToolCall, ToolResult, Value, World
from fumehood.core.trace import CallMade, Recorder
from fumehood.core.virtual_time import timed_world
from fumehood.layers.observe import Observer

_CALL_KINDS = tuple(kind for kind in BudgetKind if kind.charged_by is ChargedBy.CALL)


class TraceCalls:
    """The outermost layer: records the call that the agent sent and the result that it received."""

    def __init__(
        self,
        seat: str,
        world: World,
        ledger: Ledger,
        recorder: Recorder,
        clock: Clock,
        numbers: Iterator[int],
        observer: Observer | None = None,
    ) -> None:
        """Create the layer.

        Args:
            seat: name of the calling seat.
            world: its state is digested after each call.
            ledger: of the calling seat; an inner layer charges it.
            recorder: receives the events.
            clock: measures how long a call takes.
            numbers: 1, 2, 3, and so on; shared by all seats of the episode.
            observer: notes what the world receives; None if the task has no policy, and no fault
                that delivers calls again.
        """
        self._seat = seat
        self._world = world
        self._timed = timed_world(world)
        self._ledger = ledger
        self._recorder = recorder
        self._clock = clock
        self._numbers = numbers
        self._observer = observer
        self._digested_revision = -1
        self._digest = ""

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Number the call, forward it, and record the call with its result.

        Raises:
            WorkEnded: the work of the seat ended; the call is recorded if the world executed it.
        """
        started_ns = self._clock.now_ns()
        numbered = ToolCall(call.tool_name, call.arguments, next(self._numbers))
        before = self._ledger.spent_on(_CALL_KINDS)

        def record(result: ToolResult) -> None:
            after = self._ledger.spent_on(_CALL_KINDS)
            charged = {
                kind: spent - spent_before
                for kind, spent, spent_before in zip(_CALL_KINDS, after, before, strict=True)
                if spent != spent_before
            }
            self._record(numbered, result, charged, self._clock.now_ns() - started_ns)

        try:
            result = forward(numbered)
        except WorkEnded as ended:
            # Otherwise an agent could hide what a call did by ending its work before the answer.
            if ended.result is not None:
                record(ended.result)
            raise
        record(result)
        return result

    def _record(
        self, numbered: ToolCall, result: ToolResult, charged: Amounts, duration_ns: int
    ) -> None:
        remaining = self._ledger.remaining(ChargedBy.CALL)
        at_ms = None if self._timed is None else self._timed.now_ms
        event = CallMade(
            self._seat, numbered, result, self._state_digest(), charged, remaining, at_ms
        )
        if self._observer is not None:
            event = _with_observation(event, self._observer)
        self._recorder.record(event, duration_ns)

    def _state_digest(self) -> str:
        # Most calls only read, so the digest is computed again only after the state has changed.
        if self._world.revision != self._digested_revision:
            self._digest = digest_json(self._world.state)
            self._digested_revision = self._world.revision
        return self._digest


def _with_observation(event: CallMade, observer: Observer) -> CallMade:
    """Return the event with what the observer noted during the call."""
    seen, number = observer.observation(event.call), event.call.number
    seems_executed = isinstance(event.result, Value) or event.result.is_executed
    if not are_usual(seen.deliveries, number, seems_executed=seems_executed):
        event = replace(event, delivered=seen.deliveries)
    if not observer.has_policy:
        return event
    if seen.executed_at_ms != event.at_ms:
        event = replace(event, executed_at_ms=seen.executed_at_ms)
    if gate_of_invalid_approval(event.result) != seen.invalid_approval:
        event = replace(event, invalid_approval=seen.invalid_approval)
    return replace(
        event,
        observed=seen.observed,
        changed=observer.changed_canaries(),
        had_effect=seen.had_effect,
    )
