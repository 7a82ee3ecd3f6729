"""Seats that speak one after the other, each hearing what was said since its last words: peers, a chain."""

from __future__ import annotations

from fumehood.core.conversation import Handover
from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.voices import one_voice
from fumehood.turn_policies.settings import check_names, count_setting, known_seat, text_setting


class Round:
    """Settings: ``order`` (seats, by default as they are listed), ``rounds`` (how often it goes round, 1 for
    a chain), ``opening`` (what everybody hears first), ``stop`` (a text that ends it, whoever says it)."""

    def __init__(self, settings: JsonObject, seats: tuple[str, ...]) -> None:
        """Wait for the opening.

        Raises:
            SpecError: a setting cannot be used.
        """
        check_names(settings, ("order", "rounds", "opening", "stop"))
        order = settings.get("order", list(seats))
        if not isinstance(order, list) or len(order) != len({*map(str, order)}) or not order:
            raise SpecError("conversation.settings.order", "must be a list of seats, none twice")
        self._order = [known_seat(name, "conversation.settings.order", seats) for name in order]
        self._turns_left = count_setting(settings, "rounds", 1) * len(self._order)
        self._stop = text_setting(settings, "stop")
        opening = text_setting(settings, "opening")
        self._unheard: dict[str, list[str]] = {
            name: [opening] if opening else [] for name in self._order
        }

    def open(self) -> Handover:
        """Let the first seat begin."""
        return self._hand_to(self._order[0])

    def heard(self, seat: str, text: str) -> Handover | None:
        """Note the words for all others and go on with the next."""
        for other in self._order:
            if other != seat:
                self._unheard[other].append(one_voice(f"{seat}: {text}"))
        ends = bool(self._stop) and self._stop in text
        return None if ends else self._next_after(seat)

    def left(self, seat: str) -> Handover | None:
        """Go on without the seat."""
        goes_on = self._next_after(seat)
        self._order.remove(seat)
        return goes_on if self._order else None

    def _next_after(self, seat: str) -> Handover | None:
        self._turns_left -= 1
        if self._turns_left <= 0:
            return None
        return self._hand_to(self._order[(self._order.index(seat) + 1) % len(self._order)])

    def _hand_to(self, seat: str) -> Handover:
        heard, self._unheard[seat] = self._unheard[seat], []
        return Handover(seat, "\n\n".join(heard))
