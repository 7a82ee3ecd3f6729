"""One participant of an episode: its tools, its budget and its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runner.core.events import Recorder, SeatEnded
from runner.core.json_values import Json
from runner.core.ledger import BudgetKind, Ledger
from runner.core.outcome import OutOfBudget, SeatEnd
from runner.core.tools import ToolCall, ToolResult, Toolset, ToolSpec


@dataclass(frozen=True, slots=True)
class Reply:
    """What a seat gets back for a call."""

    result: ToolResult
    remaining: dict[BudgetKind, int]
    ended: bool
    """True when no further call of this seat will be carried out."""
    call: ToolCall
    """As it was sent."""


class Seat:
    """Not safe for use from several threads: whoever serves an episode lets one call in at a time."""

    def __init__(
        self, name: str, instruction: str, door: Toolset, ledger: Ledger, recorder: Recorder
    ) -> None:
        self.name = name
        self.instruction = instruction
        self.end: SeatEnd | None = None
        """How the work ended; None while it goes on."""
        self._door = door
        self._ledger = ledger
        self._recorder = recorder

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the seat's tools in their order."""
        return self._door.list_tools()

    def remaining(self) -> dict[BudgetKind, int]:
        """Return what is left of each counted budget."""
        return self._ledger.remaining()

    def call(self, tool_name: str, arguments: Mapping[str, Json]) -> Reply:
        """Carry out one call; the seat must not have ended.

        Raises:
            SpecError: the world cannot go on with the state its task gave it.
        """
        call = ToolCall(tool_name, arguments)
        result = self._door.call(call)
        exhausted = self._ledger.exhausted
        if exhausted is not None:
            self.finish(OutOfBudget(exhausted))
        return Reply(result, self._ledger.remaining(), self.end is not None, call)

    def finish(self, end: SeatEnd) -> bool:
        """End the seat's work.

        Returns:
            Whether this ending counted; the first one does.
        """
        if self.end is not None:
            return False
        self.end = end
        self._recorder.record(SeatEnded(self.name, end))
        return True
