"""The SDK's seat without a socket: an agent and the door in one process, for proofs and benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fumehood.core.episode import Seat
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import GaveUp
from fumehood.core.tools import Value as CoreValue
from fumehood.harness_modes.registry import Profile
from fumehood_agent.errors import Ended
from fumehood_agent.seat import Failure, Remaining, Reply, Task, Tool, Value


class MemorySeat:
    """Implements :class:`fumehood_agent.seat.Seat` over a seat of the core."""

    def __init__(self, seat: Seat, profile: Profile) -> None:
        self._seat = seat
        self._profile = profile
        self._task: Task | None = None

    @property
    def task(self) -> Task:
        """What the user said last; the same object until there is more."""
        self._task = self._task or self._view()
        return self._task

    def _view(self) -> Task:
        tools = tuple(
            Tool(tool.name, tool.parameters, tool.description) for tool in self._seat.list_tools()
        )
        remaining = _remaining(self._seat.remaining())
        return Task(self._seat.instruction, tools, remaining, self._seat.turn)

    def call(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        """Call through the door; raises Ended when the work has ended."""
        if self._seat.end is not None:
            raise Ended
        reply = self._seat.call(name, arguments)
        result = reply.result
        return Reply(
            Value(result.output)
            if isinstance(result, CoreValue)
            else Failure(result.code, result.message, dict(result.details)),
            _remaining(reply.remaining),
            reply.ended,
            self._profile.recorded_arguments(reply),
        )

    def submit(self, answer: str = "") -> bool:
        """End the turn with an answer."""
        if self._seat.end is not None:
            return False
        self._seat.answer(answer)
        if self._seat.end is None:
            self._task = None
        return True

    def give_up(self, reason: str) -> bool:
        """End the work without one."""
        return self._seat.finish(GaveUp(reason))


def _remaining(left: Mapping[BudgetKind, int]) -> Remaining:
    return Remaining(
        steps=left.get(BudgetKind.STEPS),
        calls=left.get(BudgetKind.CALLS),
        retries=left.get(BudgetKind.RETRIES),
        answer_bytes=left.get(BudgetKind.ANSWER_BYTES),
        model_calls=left.get(BudgetKind.MODEL_CALLS),
        model_tokens=left.get(BudgetKind.MODEL_TOKENS),
        model_microusd=left.get(BudgetKind.MODEL_MICROUSD),
    )
