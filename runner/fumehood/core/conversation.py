"""Seats that talk in turn: which of them has the floor, and what it was told when it got it.

One seat at a time has the floor. It works until it answers; a turn_policy hears the answer and says who goes on
and with which words. So the same words lead to the same episode, however fast who thinks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.outcome import Finished, SeatEnd


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


@dataclass(frozen=True, slots=True)
class ConversationSpec:
    """How the seats of an episode talk to each other."""

    rule: str
    """Name of the turn_policy, such as ``dialogue``."""
    settings: JsonObject
    """In the turn_policy's own terms."""

    def to_json(self) -> JsonObject:
        """Return the specification."""
        return {"rule": self.rule, "settings": self.settings}


@dataclass(frozen=True, slots=True)
class Handover:
    """A seat gets the floor."""

    seat: str
    text: str
    """What it is told. The first words a seat hears stand below its own instruction; they may be empty."""


@runtime_checkable
class TurnPolicy(Protocol):
    """Decides who speaks next. Must be a function of what it has heard, and of nothing else."""

    def open(self) -> Handover:
        """Return who begins."""
        ...

    def heard(self, seat: str, text: str) -> Handover | None:
        """Return who goes on after ``seat`` said ``text``; None when all has been said."""
        ...

    def left(self, seat: str) -> Handover | None:
        """Return who goes on when ``seat`` gave up or used up its budget or time; None when nobody does."""
        ...


@dataclass(frozen=True, slots=True)
class TurnBegan:
    """A seat got the floor, for its ``turn``-th time from 1."""

    seat: str
    turn: int
    text: str

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {"kind": "turn_began", "seat": self.seat, "turn": self.turn, "text": self.text}


class Speaker(Protocol):
    """A seat, as far as a conversation knows it."""

    name: str
    end: SeatEnd | None

    def hear(self, text: str) -> None:
        """Take the floor with these words."""
        ...

    def finish(self, end: SeatEnd) -> bool:
        """End the work; False when it had ended."""
        ...


class Conversation:
    """Where an episode's seats stand among each other. Not safe for use from several threads."""

    def __init__(self, turn_policy: TurnPolicy) -> None:
        self.speaker: str | None = None
        """The seat that has the floor; None before the first words and after the last."""
        self.on_change: Callable[[], None] = lambda: None
        """Called whenever another seat has the floor, and when all has been said."""
        self._moderator = turn_policy
        self._seats: dict[str, Speaker] = {}
        self._is_over = False

    def join(self, seat: Speaker) -> None:
        """Let a seat take part."""
        self._seats[seat.name] = seat

    def begin(self) -> None:
        """Give somebody the floor; once, when all have joined.

        Raises:
            SpecError: who is to begin has no seat.
        """
        first = self._moderator.open()
        if first.seat not in self._seats:
            raise SpecError(
                "conversation", f"{first.seat!r} begins, and is none of {', '.join(self._seats)}"
            )
        self.hand_over(first)

    def next_after(self, seat: str, text: str) -> Handover | None:
        """Return who goes on after ``seat`` said ``text``; None when those were the last words."""
        return self._passed_on(self._moderator.heard(seat, text))

    def hand_over(self, handover: Handover) -> None:
        """Let another seat speak."""
        self.speaker = handover.seat
        self._seats[handover.seat].hear(handover.text)
        self.on_change()

    def leave(self, seat: str, *, ends_all: bool) -> None:
        """Note that a seat's work has ended; it had the floor, or all has been said."""
        if self._is_over or self.speaker != seat:
            return
        handover = None if ends_all else self._passed_on(self._moderator.left(seat))
        if handover:
            self.hand_over(handover)
        else:
            self.close()

    def close(self) -> None:
        """End the work of all who wait: nobody speaks any more. Closing twice is closing once."""
        if self._is_over:
            return
        self._is_over, self.speaker = True, None
        for seat in self._seats.values():
            seat.finish(Finished())
        self.on_change()

    def _passed_on(self, handover: Handover | None) -> Handover | None:
        """Return who can go on, asking once a seat: whose work ended while it waited has left by now."""
        for _ in self._seats:
            if handover is None or handover.seat not in self._seats:
                return None
            if self._seats[handover.seat].end is None:
                return handover
            handover = self._moderator.left(handover.seat)
        return None


LATER = "\n    "
"""Before every line of a voice but its first: a line that begins at the margin is somebody else's."""


def one_voice(text: str) -> str:
    """Return what one says, so that no line of it looks like the beginning of what another says."""
    return LATER.join(text.splitlines())
