"""Turn-taking: the messages of a seat, and the conversation of several seats.

One seat at a time has the turn and works until it submits an answer. A turn policy then selects the
next seat and the text that it receives. Episodes therefore do not depend on the speed of the
agents.
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
    """Names of the world's tools that are available from this turn on."""


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """Event: the agent submitted an answer, and another turn follows."""

    seat: str
    turn: int
    """Number of the turn that ended, from 1."""
    answer: str

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {"kind": "turn_ended", "seat": self.seat, "turn": self.turn, "answer": self.answer}


class TurnQueue:
    """The messages of one seat, and its current turn."""

    def __init__(
        self,
        instruction: str,
        further_turns: tuple[Turn, ...] = (),
        withheld: frozenset[str] = frozenset(),
    ) -> None:
        """Start at the first message.

        Args:
            instruction: the first message.
            further_turns: the later messages, if they are fixed in advance.
            withheld: names of the world's tools that belong to other seats only.
        """
        self.instruction = instruction
        """The latest message to the seat."""
        self.number = 1
        """Number of the current turn, from 1."""
        self.withheld = withheld
        self._ahead = further_turns
        self._has_received = False
        self.hidden = self._hidden()
        """Names of the tools that are not available in this turn."""

    @property
    def is_last(self) -> bool:
        """Whether no turn follows."""
        return not self._ahead

    def advance(self) -> None:
        """Start the next turn. There must be one."""
        turn, *rest = self._ahead
        self._ahead = tuple(rest)
        self.instruction = turn.instruction
        self.number += 1
        self.hidden = self._hidden()

    def receive(self, text: str) -> None:
        """Store a message of another seat. The first one is appended to the seat's instruction."""
        if self._has_received:
            self.instruction = text
            self.number += 1
        elif text:
            self.instruction = f"{self.instruction}\n\n{text}"
        self._has_received = True

    def _hidden(self) -> frozenset[str]:
        later = frozenset(name for turn in self._ahead for name in turn.tools)
        return later | self.withheld if self.withheld else later


@dataclass(frozen=True, slots=True)
class ConversationSpec:
    """How the seats of an episode take turns."""

    rule: str
    """Name of the turn policy, such as ``dialogue``."""
    settings: JsonObject
    """Settings of the turn policy."""

    def to_json(self) -> JsonObject:
        """Return the specification."""
        return {"rule": self.rule, "settings": self.settings}


@dataclass(frozen=True, slots=True)
class Handover:
    """Which seat has the next turn, and what it receives."""

    seat: str
    text: str
    """The message to the seat. The first one is appended to the seat's instruction and may be
    empty."""


@runtime_checkable
class TurnPolicy(Protocol):
    """Selects the next seat. The result must depend only on the texts of the conversation."""

    def first_turn(self) -> Handover:
        """Return the first turn."""
        ...

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        """Return the turn after ``seat`` submitted ``text``; None ends the conversation."""
        ...

    def turn_after_end(self, seat: str) -> Handover | None:
        """Return the turn after ``seat`` ended its work; None ends the conversation."""
        ...


@dataclass(frozen=True, slots=True)
class TurnBegan:
    """Event: a turn of a seat began. ``turn`` counts the turns of that seat from 1."""

    seat: str
    turn: int
    text: str

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {"kind": "turn_began", "seat": self.seat, "turn": self.turn, "text": self.text}


class Participant(Protocol):
    """The part of a seat that a conversation uses."""

    name: str
    end: SeatEnd | None

    def receive(self, text: str) -> None:
        """Begin a turn with this message."""
        ...

    def finish(self, end: SeatEnd) -> bool:
        """End the work; return False if it had ended before."""
        ...


class Conversation:
    """Passes the turn between the seats of an episode. Not thread-safe."""

    answers_end_all = True
    """Whether an answer after which no turn follows ends the work of all seats."""

    def __init__(self, turn_policy: TurnPolicy) -> None:
        self.turn_holder: str | None = None
        """The seat that has the turn; None before the first and after the last turn."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when the turn passes to another seat and when the conversation ends."""
        self.wait_for: Callable[[Callable[[], bool]], object] = lambda condition: None
        """Blocks until a condition holds; other seats act meanwhile."""
        self._policy = turn_policy
        self._seats: dict[str, Participant] = {}
        self.is_over = False
        """Whether the conversation has ended."""

    def join(self, seat: Participant) -> None:
        """Add a seat."""
        self._seats[seat.name] = seat

    def begin(self) -> None:
        """Begin the first turn. Call once, after all seats have joined.

        Raises:
            SpecError: the turn policy selects an unknown seat.
        """
        first = self._policy.first_turn()
        if first.seat not in self._seats:
            raise SpecError(
                "conversation", f"the first seat is {first.seat!r}; seats: {', '.join(self._seats)}"
            )
        self.pass_turn(first)

    def next_after(self, seat: str, text: str) -> Handover | None:
        """Return the turn after ``seat`` submitted ``text``; None if the conversation ends."""
        return self._next_active(self._policy.turn_after_answer(seat, text))

    def pass_turn(self, handover: Handover) -> None:
        """Begin the turn of another seat."""
        self.turn_holder = handover.seat
        self._seats[handover.seat].receive(handover.text)
        self.on_change()

    def leave(self, seat: str, *, ends_all: bool) -> None:
        """Continue after the work of a seat has ended."""
        if self.is_over or self.turn_holder != seat:
            return
        handover = None if ends_all else self._next_active(self._policy.turn_after_end(seat))
        if handover:
            self.pass_turn(handover)
        else:
            self.close()

    def can_act(self, seat: str) -> bool:
        """Return whether a request of a seat can be executed now."""
        return self.turn_holder == seat

    def stop(self) -> None:
        """End the conversation; seats whose work goes on get no further turn."""
        self.is_over, self.turn_holder = True, None
        self.on_change()

    def close(self) -> None:
        """End the conversation and the work of all seats. Has no effect the second time."""
        if self.is_over:
            return
        self.is_over, self.turn_holder = True, None
        for seat in self._seats.values():
            seat.finish(Finished())
        self.on_change()

    def _next_active(self, handover: Handover | None) -> Handover | None:
        """Return the next seat that can act, skipping seats that ended while waiting."""
        for _ in self._seats:
            if handover is None or handover.seat not in self._seats:
                return None
            if self._seats[handover.seat].end is None:
                return handover
            handover = self._policy.turn_after_end(handover.seat)
        return None


CONTINUATION = "\n    "
"""Separates the lines of one speaker. A line without indentation begins the text of another
speaker."""


def indent_continuation(text: str) -> str:
    """Indent all lines except the first, so that no line looks like the text of another speaker."""
    return CONTINUATION.join(text.splitlines())
