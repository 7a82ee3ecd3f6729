"""The next seat if the work of a seat ended while others had the turn."""

from __future__ import annotations

import pytest

from fumehood.core.conversation import Conversation, Handover, Turn, TurnQueue
from fumehood.core.errors import SpecError
from fumehood.core.outcome import Finished, GaveUp, SeatEnd
from fumehood.turn_policies.policies import Round


class Participant:
    """A seat that only listens."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.end: SeatEnd | None = None

    def receive(self, text: str) -> None:
        """Hear it."""

    def finish(self, end: SeatEnd) -> bool:
        """End, once."""
        self.end = self.end or end
        return self.end is end


def test_a_seat_that_ended_while_waiting_is_skipped() -> None:
    talk = Conversation(Round({"rounds": 2}, ("a", "b", "c", "d")))
    seats = {name: Participant(name) for name in ("a", "b", "c", "d")}
    for seat in seats.values():
        talk.join(seat)
    talk.begin()
    for name in ("b", "c"):
        seats[name].finish(GaveUp("enough"))
        talk.leave(name, ends_all=False)
    assert talk.turn_holder == "a"
    assert talk.next_after("a", "hello") == Handover("d", "a: hello")


def test_the_conversation_ends_if_no_seat_is_left() -> None:
    talk = Conversation(Round({"rounds": 2}, ("a", "b")))
    seats = [Participant("a"), Participant("b")]
    for seat in seats:
        talk.join(seat)
    talk.begin()
    for seat in reversed(seats):
        seat.finish(GaveUp("enough"))
        talk.leave(seat.name, ends_all=False)
    assert talk.turn_holder is None
    assert not any(isinstance(seat.end, Finished) for seat in seats)


def test_a_turn_policy_that_begins_with_an_unknown_seat_is_rejected() -> None:
    talk = Conversation(Round({}, ("a", "b")))
    talk.join(Participant("agent"))
    with pytest.raises(SpecError, match="the first seat is 'a'; seats: agent"):
        talk.begin()


def test_a_turn_policy_that_selects_an_ended_seat_again_ends_the_conversation() -> None:
    class Stubborn(Round):
        def turn_after_end(self, seat: str) -> Handover:
            return Handover("b", "Do go on.")

    talk = Conversation(Stubborn({"rounds": 9}, ("a", "b")))
    seats = [Participant("a"), Participant("b")]
    for seat in seats:
        talk.join(seat)
    talk.begin()
    seats[1].finish(GaveUp("enough"))
    assert talk.next_after("a", "hello") is None


def test_the_first_message_of_another_seat_is_appended_and_the_next_ones_replace() -> None:
    queue = TurnQueue("do it")
    queue.receive("please")
    assert (queue.instruction, queue.number) == ("do it\n\nplease", 1)
    queue.receive("and more")
    assert (queue.instruction, queue.number) == ("and more", 2)
    queue.receive("")
    assert (queue.instruction, queue.number) == ("", 3)


def test_an_empty_first_message_changes_nothing() -> None:
    queue = TurnQueue("do it")
    queue.receive("")
    assert queue.instruction == "do it"


def test_tools_of_later_turns_and_other_seats_are_hidden() -> None:
    queue = TurnQueue("a", (Turn("b", ("late",)), Turn("c", ("latest",))), frozenset({"other"}))
    assert queue.hidden == {"late", "latest", "other"}
    queue.advance()
    assert (queue.instruction, queue.number, queue.is_last) == ("b", 2, False)
    assert queue.hidden == {"latest", "other"}
    queue.advance()
    assert queue.hidden == {"other"}
    assert queue.is_last
