"""What every rule reads from its settings, and how it complains."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fumehood.core.conversation import Handover, one_voice
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject

TURNS_MAX = 200
"""Turns of all seats together, where the settings do not say."""


def check_names(settings: JsonObject, known: Iterable[str]) -> None:
    """Look whether a rule knows every setting.

    Raises:
        SpecError: one is unknown.
    """
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise SpecError(
            f"conversation.settings.{unknown[0]}", f"is none of {', '.join(sorted(known))}"
        )


def seat_setting(settings: JsonObject, name: str, seats: tuple[str, ...]) -> str:
    """Return the seat that a setting names.

    Raises:
        SpecError: it names none.
    """
    return known_seat(settings.get(name), f"conversation.settings.{name}", seats)


def known_seat(value: Json, field: str, seats: tuple[str, ...]) -> str:
    """Return the seat that a value names.

    Raises:
        SpecError: it names none.
    """
    if isinstance(value, str) and value in seats:
        return value
    raise SpecError(field, f"must name a seat: {', '.join(seats)}")


def text_setting(settings: JsonObject, name: str) -> str:
    """Return a text; empty where there is none.

    Raises:
        SpecError: it is none.
    """
    value = settings.get(name, "")
    if isinstance(value, str):
        return value
    raise SpecError(f"conversation.settings.{name}", "must be a text")


def count_setting(settings: JsonObject, name: str, default: int) -> int:
    """Return a count, at least 1.

    Raises:
        SpecError: it is none.
    """
    value = settings.get(name, default)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise SpecError(f"conversation.settings.{name}", "must be a whole number from 1")


class Dialogue:
    """Settings: ``first`` (the seat that begins), ``opening`` (what it hears), ``stop`` (by seat, texts that
    end the dialogue when it says one), ``turns_max`` (turns of both together)."""

    def __init__(self, settings: JsonObject, seats: tuple[str, ...]) -> None:
        """Wait for the opening.

        Raises:
            SpecError: there are not two seats, or a setting cannot be used.
        """
        check_names(settings, ("first", "opening", "stop", "turns_max"))
        if len(seats) != 2:
            raise SpecError("conversation.rule", f"a dialogue has two seats, not {len(seats)}")
        self._first = seat_setting(settings, "first", seats)
        self._opening = text_setting(settings, "opening")
        self._other = {seats[0]: seats[1], seats[1]: seats[0]}
        self._stop = _stop_words(settings, seats)
        self._turns_left = count_setting(settings, "turns_max", TURNS_MAX)

    def open(self) -> Handover:
        """Let the first seat begin."""
        return Handover(self._first, self._opening)

    def heard(self, seat: str, text: str) -> Handover | None:
        """Pass the words on, unless they end it."""
        self._turns_left -= 1
        if self._turns_left <= 0 or any(word in text for word in self._stop.get(seat, ())):
            return None
        return Handover(self._other[seat], text)

    def left(self, seat: str) -> Handover | None:
        """End it: nobody talks alone."""
        return None


def _stop_words(settings: JsonObject, seats: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    field = "conversation.settings.stop"
    given = settings.get("stop", {})
    if not isinstance(given, dict):
        raise SpecError(field, "must hold lists of texts by seat")
    words: dict[str, tuple[str, ...]] = {}
    for seat, texts in given.items():
        if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
            raise SpecError(f"{field}.{seat}", "must be a list of texts that are not empty")
        words[known_seat(seat, field, seats)] = tuple(str(text) for text in texts)
    return words


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
