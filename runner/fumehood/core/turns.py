"""What a seat is told, one message after another, and the tools that come with a message.

A turn is over when its agent submits. Then the next message is there, or the work has ended. A user's further
messages are fixed in advance; what other seats say in a conversation comes from outside.
"""

from __future__ import annotations

from dataclasses import dataclass

from fumehood.core.json_values import JsonObject


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


class TurnQueue:
    """Where a seat stands among its turns."""

    def __init__(
        self,
        instruction: str,
        further_turns: tuple[Turn, ...] = (),
        withheld: frozenset[str] = frozenset(),
    ) -> None:
        """Stand at the first message.

        Args:
            instruction: the first message.
            further_turns: the others, where they are fixed.
            withheld: names of the world's tools that are other seats' alone.
        """
        self.instruction = instruction
        """What the seat was told last."""
        self.number = 1
        """Of the turn, from 1."""
        self.withheld = withheld
        self._ahead = further_turns
        self._has_heard = False
        self.hidden = self._hidden()
        """Names of tools that are not on offer now: they come with a later turn, or never."""

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
        self.hidden = self._hidden()

    def hear(self, text: str) -> None:
        """Take in what somebody said; the first words stand below the seat's own instruction."""
        if self._has_heard:
            self.instruction = text
            self.number += 1
        elif text:
            self.instruction = f"{self.instruction}\n\n{text}"
        self._has_heard = True

    def _hidden(self) -> frozenset[str]:
        later = frozenset(name for turn in self._ahead for name in turn.tools)
        return later | self.withheld if self.withheld else later
