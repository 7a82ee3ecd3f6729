"""What a user says, one message after another, fixed in advance; and the tools that come with a message.

A turn is over when its agent submits. Then the next message is there, or the work has ended. Knows nothing
about what an agent answers: what is said next never depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass

from runner.core.json_values import JsonObject


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of the user, after the first."""

    instruction: str
    tools: tuple[str, ...] = ()
    """Names of the world's tools that are there from this turn on and not before."""


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The agent answered, and the user had more to say."""

    seat: str
    turn: int
    """The one that is over, from 1."""
    answer: str

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {"kind": "turn_ended", "seat": self.seat, "turn": self.turn, "answer": self.answer}


class Script:
    """Where a seat stands among its turns."""

    def __init__(self, instruction: str, further_turns: tuple[Turn, ...] = ()) -> None:
        self.instruction = instruction
        """What the user said last."""
        self.number = 1
        """Of the turn, from 1."""
        self.hidden = frozenset(name for turn in further_turns for name in turn.tools)
        """Names of tools that come with a later turn."""
        self._ahead = further_turns

    @property
    def is_last(self) -> bool:
        """Whether no turn follows."""
        return not self._ahead

    def advance(self) -> None:
        """Go on to the next turn; there must be one."""
        turn, *rest = self._ahead
        self._ahead = tuple(rest)
        self.instruction = turn.instruction
        self.number += 1
        self.hidden = frozenset(name for later in self._ahead for name in later.tools)
