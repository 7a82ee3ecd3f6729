"""One seat that sends the others to work, one at a time, and hears what came of it."""

from __future__ import annotations

import re

from fumehood.core.conversation import Handover
from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.voices import one_voice
from fumehood.turn_policies.settings import (
    TURNS_MAX,
    check_names,
    count_setting,
    seat_setting,
    text_setting,
)

_ADDRESSED = re.compile(r"\s*@([a-z0-9_]+)\s*:?\s*(.*)", re.DOTALL)


class Supervisor:
    """Settings: ``head`` (the seat that leads), ``opening`` (what it hears first), ``turns_max`` (turns of
    all together). The head hands over with ``@name: text``; anything else it says ends the conversation."""

    def __init__(self, settings: JsonObject, seats: tuple[str, ...]) -> None:
        """Wait for the opening.

        Raises:
            SpecError: nobody could be sent to work, or a setting cannot be used.
        """
        check_names(settings, ("head", "opening", "turns_max"))
        if len(seats) < 2:
            raise SpecError("conversation.rule", "a supervisor needs another seat to send to work")
        self._head = seat_setting(settings, "head", seats)
        self._opening = text_setting(settings, "opening")
        self._workers = [name for name in seats if name != self._head]
        self._turns_left = count_setting(settings, "turns_max", TURNS_MAX)

    def open(self) -> Handover:
        """Let the head begin."""
        return Handover(self._head, self._opening)

    def heard(self, seat: str, text: str) -> Handover | None:
        """Pass the head's order on to whom it names, and a worker's answer back."""
        self._turns_left -= 1
        if self._turns_left <= 0:
            return None
        if seat != self._head:
            return Handover(self._head, one_voice(f"{seat}: {text}"))
        addressed = _ADDRESSED.fullmatch(text)
        if addressed is None:
            return None
        name, order = addressed.groups()
        if name in self._workers:
            return Handover(name, order)
        return Handover(
            self._head, f"There is nobody called {name}; there are: {', '.join(self._workers)}."
        )

    def left(self, seat: str) -> Handover | None:
        """End it without its head; tell the head when a worker is gone."""
        if seat == self._head:
            return None
        self._workers.remove(seat)
        return Handover(self._head, f"{seat} has left.")
