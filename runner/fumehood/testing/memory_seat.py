"""The SDK's seat directly over the core, without a service: for tests and measurements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fumehood.core.episode import Seat
from fumehood.core.outcome import GaveUp
from fumehood.core.tools import Value as CoreValue
from fumehood_agent.errors import Ended
from fumehood_agent.seat import Failure, Remaining, Reply, Task, Tool, Value


class MemorySeat:
    """Implements :class:`fumehood_agent.seat.Seat` over a seat of the core."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._task: Task | None = None

    @property
    def task(self) -> Task:
        """The current task; the same object until the user sends another message."""
        self._task = self._task or self._view()
        return self._task

    def _view(self) -> Task:
        tools = tuple(
            Tool(tool.name, tool.parameters, tool.description) for tool in self._seat.list_tools()
        )
        return Task(self._seat.instruction, tools, self._remaining(), self._seat.turn)

    def _remaining(self) -> Remaining:
        return {kind.value: units for kind, units in self._seat.ledger.remaining().items()}

    def call(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        """Call a tool through the layers; raises Ended if the work has ended."""
        if self._seat.end is not None:
            raise Ended
        reply = self._seat.call(name, arguments)
        result = reply.result
        return Reply(
            Value(result.output)
            if isinstance(result, CoreValue)
            else Failure(result.code, result.message, dict(result.details)),
            self._remaining(),
            reply.ended,
            reply.recorded_arguments,
        )

    def submit(self, answer: str = "", confidence: float | None = None) -> bool:
        """End the turn with an answer; the confidence is not recorded."""
        if self._seat.end is not None:
            return False
        self._seat.answer(answer)
        if self._seat.end is None:
            self._task = None
        return True

    def give_up(self, reason: str, confidence: float | None = None) -> bool:
        """End the work without an answer; the confidence is not recorded."""
        return self._seat.finish(GaveUp(reason))
