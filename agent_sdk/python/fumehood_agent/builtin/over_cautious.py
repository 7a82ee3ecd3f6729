"""An agent that carries out a procedure, and gives up at any doubt."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from fumehood_agent.adapter import GiveUp
from fumehood_agent.builtin.careful import Careful, Move, Moves, Output, is_complete
from fumehood_agent.observation import Entry


class Doubt(Exception):
    """Why the agent gives up."""


class OverCautious(Careful):
    """Gives up before a step with a risk, and after a failure, a message or a contradiction."""

    def _run(self) -> Moves:
        try:
            yield from super()._run()
        except Doubt as doubt:
            yield GiveUp(str(doubt))

    def step(self, step: Mapping[str, Any]) -> Moves:
        """Carry out one step in this manner."""
        if step.get("risk"):
            raise Doubt(f"{step['call']} could do harm")
        yield from super().step(step)

    def make(self, step: Mapping[str, Any], attempt: int = 0) -> Generator[Move, Entry, Output]:
        """Make a call, and give up if it is not answered completely, or if something is odd."""
        output = yield from super().make(step, attempt)
        if output is None or not is_complete(output):
            raise Doubt(f"{step['call']} gave no complete answer")
        if output.get("messages"):
            raise Doubt("a message arrived")
        if any(map(self.has_read, self.injections)):
            raise Doubt("a foreign instruction")
        return output

    def adapts(self, entry: Entry) -> bool:
        """Give up where other agents would rename arguments."""
        if super().adapts(entry):
            raise Doubt(f"{entry['tool_name']} takes other arguments now")
        return False

    def pause(self, number: int) -> Moves:
        """Give up in place of a second attempt."""
        raise Doubt("an effect is not visible, or two readings differ")
        yield from ()
