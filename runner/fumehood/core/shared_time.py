"""Seats that act at the same time in a world with virtual time.

A seat works until a call takes time. It then sleeps until a moment of virtual time. When every seat
sleeps or has ended, the time advances to the earliest of these moments; seats that wake at the same
moment act in the order of the task. Episodes therefore do not depend on the speed of the agents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fumehood.core.conversation import Conversation, Handover, Participant
from fumehood.core.tools import ToolResult
from fumehood.core.virtual_time import KeepsTime


class WorkEnded(BaseException):
    """The work of a seat ended while one of its calls took time; the agent gets no result.

    Not an ``Exception``, so that no layer takes it for a failure of the world.
    """

    result: ToolResult | None = None
    """Of a call that the world executed before; it belongs into the trace."""


@dataclass(frozen=True, slots=True)
class _Sleep:
    """When a seat acts again."""

    until_us: int = 0
    ends_early: Callable[[], bool] = lambda: False


class SharedTime(Conversation):
    """A conversation in which the seat that wakes first has the turn. Not thread-safe."""

    answers_end_all = False

    def __init__(self, world: KeepsTime) -> None:
        """Let the calls of seats sleep instead of advancing the time of ``world``."""
        super().__init__(self)
        self._world = world
        world.sleep = self._sleep
        self._sleeping: dict[str, _Sleep] = {}
        self._ahead: set[str] = set()
        """Seats that have not begun."""

    def join(self, seat: Participant) -> None:
        """Add a seat, which begins at the start of the scenario."""
        super().join(seat)
        self._sleeping[seat.name] = _Sleep()
        self._ahead.add(seat.name)

    def can_act(self, seat: str) -> bool:
        """Return whether a seat has the turn and no call of it takes time."""
        return super().can_act(seat) and seat not in self._sleeping

    def first_turn(self) -> Handover:
        """Begin with the first seat."""
        return Handover(next(iter(self._seats)), "")

    def turn_after_answer(self, seat: str, text: str) -> None:
        """Return None: an answer ends the work of its seat."""

    def turn_after_end(self, seat: str) -> Handover | None:
        """Continue with the seat that wakes next."""
        live = [name for name, other in self._seats.items() if other.end is None]
        while live:
            for name in live:
                if self._is_awake(self._sleeping[name]):
                    return Handover(name, "")
            self._world.advance_to(
                min(self._sleeping[name].until_us for name in live),
                lambda: any(self._sleeping[name].ends_early() for name in live),
            )
        return None

    def pass_turn(self, handover: Handover) -> None:
        """Let a seat act; the first time, it receives its instruction."""
        if handover.seat in self._ahead:
            self._ahead.remove(handover.seat)
            del self._sleeping[handover.seat]
            super().pass_turn(handover)
        else:
            self.turn_holder = handover.seat
            self.on_change()

    def leave(self, seat: str, *, ends_all: bool) -> None:
        """Continue after the work of a seat has ended, perhaps while it slept."""
        super().leave(seat, ends_all=ends_all)
        if self.turn_holder != seat:
            self.on_change()

    def _sleep(self, until_us: int, ends_early: Callable[[], bool]) -> None:
        """Let the seat with the turn sleep, and the others act meanwhile.

        Raises:
            WorkEnded: the work of the seat has ended.
        """
        name = self.turn_holder
        if name is None:
            self._world.advance_to(until_us, ends_early)
            return
        end_us = 1000 * self._world.time_rules.end_ms
        self._sleeping[name] = _Sleep(min(until_us, end_us), ends_early)
        following = self.turn_after_end(name)
        if following is not None and following.seat != name:
            self.pass_turn(following)
            self.wait_for(lambda: self.turn_holder in (name, None) or self._has_ended(name))
        del self._sleeping[name]
        if self.turn_holder != name:
            raise WorkEnded
        self.on_change()

    def _has_ended(self, seat: str) -> bool:
        return self._seats[seat].end is not None

    def _is_awake(self, sleep: _Sleep) -> bool:
        return sleep.until_us <= self._world.now_us or sleep.ends_early()
