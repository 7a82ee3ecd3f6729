"""The built-in turn policies, and how they read their settings."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fumehood.core.conversation import Handover, indent_continuation
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject

TURNS_MAX = 200
"""Default limit of the turns of all seats together."""


def check_names(settings: JsonObject, known: Iterable[str]) -> None:
    """Check that a policy knows every setting.

    Raises:
        SpecError: a setting is unknown.
    """
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise SpecError(
            f"conversation.settings.{unknown[0]}",
            f"is not a setting of this policy; settings: {', '.join(sorted(known))}",
        )


def seat_setting(settings: JsonObject, name: str, seats: tuple[str, ...]) -> str:
    """Return the seat that a setting names.

    Raises:
        SpecError: it does not name a seat.
    """
    return seat_value(settings.get(name), f"conversation.settings.{name}", seats)


def seat_value(value: Json, field: str, seats: tuple[str, ...]) -> str:
    """Return the seat that a value names.

    Raises:
        SpecError: it does not name a seat.
    """
    if isinstance(value, str) and value in seats:
        return value
    raise SpecError(field, f"must name a seat: {', '.join(seats)}")


def text_setting(settings: JsonObject, name: str) -> str:
    """Return a text setting, empty by default.

    Raises:
        SpecError: it has another type.
    """
    value = settings.get(name, "")
    if isinstance(value, str):
        return value
    raise SpecError(f"conversation.settings.{name}", "must be text")


def count_setting(settings: JsonObject, name: str, default: int) -> int:
    """Return a count setting, at least 1.

    Raises:
        SpecError: it has another type.
    """
    value = settings.get(name, default)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise SpecError(f"conversation.settings.{name}", "must be a whole number, at least 1")


class Dialogue:
    """Two seats take turns until one submits a stop text.

    Settings: ``first`` (the seat that begins), ``opening`` (its message), ``stop`` (by seat, texts
    that end the dialogue), ``turns_max`` (turns of both seats together).
    """

    def __init__(self, settings: JsonObject, seats: tuple[str, ...]) -> None:
        """Read the settings.

        Raises:
            SpecError: there are not two seats, or a setting is invalid.
        """
        check_names(settings, ("first", "opening", "stop", "turns_max"))
        if len(seats) != 2:
            raise SpecError("conversation.rule", f"dialogue needs two seats, not {len(seats)}")
        self._first = seat_setting(settings, "first", seats)
        self._opening = text_setting(settings, "opening")
        self._other = {seats[0]: seats[1], seats[1]: seats[0]}
        self._stop = _stop_words(settings, seats)
        self._turns_left = count_setting(settings, "turns_max", TURNS_MAX)

    def first_turn(self) -> Handover:
        """Begin with the first seat."""
        return Handover(self._first, self._opening)

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        """Pass the text to the other seat, unless it ends the dialogue."""
        self._turns_left -= 1
        if self._turns_left <= 0 or any(word in text for word in self._stop.get(seat, ())):
            return None
        return Handover(self._other[seat], text)

    def turn_after_end(self, seat: str) -> Handover | None:
        """End the dialogue."""
        return None


def _stop_words(settings: JsonObject, seats: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    field = "conversation.settings.stop"
    given = settings.get("stop", {})
    if not isinstance(given, dict):
        raise SpecError(field, "must be an object of lists of texts by seat")
    words: dict[str, tuple[str, ...]] = {}
    for seat, texts in given.items():
        if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
            raise SpecError(f"{field}.{seat}", "must be a list of non-empty texts")
        words[seat_value(seat, field, seats)] = tuple(str(text) for text in texts)
    return words


class Round:
    """Seats take turns in a fixed order. Each receives the texts since its last turn.

    Settings: ``order`` (seats, by default in the order of the task), ``rounds`` (number of rounds,
    1 by default), ``opening`` (the first message to every seat), ``stop`` (a text that ends the
    conversation).
    """

    def __init__(self, settings: JsonObject, seats: tuple[str, ...]) -> None:
        """Read the settings.

        Raises:
            SpecError: a setting is invalid.
        """
        check_names(settings, ("order", "rounds", "opening", "stop"))
        order = settings.get("order", list(seats))
        if not isinstance(order, list) or len(order) != len({*map(str, order)}) or not order:
            raise SpecError("conversation.settings.order", "must be a list of different seats")
        self._order = [seat_value(name, "conversation.settings.order", seats) for name in order]
        self._turns_left = count_setting(settings, "rounds", 1) * len(self._order)
        self._stop = text_setting(settings, "stop")
        opening = text_setting(settings, "opening")
        self._pending: dict[str, list[str]] = {
            name: [opening] if opening else [] for name in self._order
        }

    def first_turn(self) -> Handover:
        """Begin with the first seat."""
        return self._turn_of(self._order[0])

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        """Store the text for all other seats and continue with the next one."""
        for other in self._order:
            if other != seat:
                self._pending[other].append(indent_continuation(f"{seat}: {text}"))
        ends = bool(self._stop) and self._stop in text
        return None if ends else self._next_after(seat)

    def turn_after_end(self, seat: str) -> Handover | None:
        """Continue without the seat."""
        following = self._next_after(seat)
        self._order.remove(seat)
        return following if self._order else None

    def _next_after(self, seat: str) -> Handover | None:
        self._turns_left -= 1
        if self._turns_left <= 0:
            return None
        return self._turn_of(self._order[(self._order.index(seat) + 1) % len(self._order)])

    def _turn_of(self, seat: str) -> Handover:
        texts, self._pending[seat] = self._pending[seat], []
        return Handover(seat, "\n\n".join(texts))


_ADDRESSED = re.compile(r"\s*@([a-z0-9_]+)\s*:?\s*(.*)", re.DOTALL)


class Supervisor:
    """One seat assigns work to the others, one at a time, and receives their answers.

    The head assigns work with ``@name: text``; any other text ends the conversation. Settings:
    ``head`` (the leading seat), ``opening`` (its first message), ``turns_max`` (turns of all seats
    together).
    """

    def __init__(self, settings: JsonObject, seats: tuple[str, ...]) -> None:
        """Read the settings.

        Raises:
            SpecError: there is only one seat, or a setting is invalid.
        """
        check_names(settings, ("head", "opening", "turns_max"))
        if len(seats) < 2:
            raise SpecError("conversation.rule", "supervisor needs at least two seats")
        self._head = seat_setting(settings, "head", seats)
        self._opening = text_setting(settings, "opening")
        self._workers = [name for name in seats if name != self._head]
        self._turns_left = count_setting(settings, "turns_max", TURNS_MAX)

    def first_turn(self) -> Handover:
        """Begin with the head."""
        return Handover(self._head, self._opening)

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        """Pass an order of the head to the named worker, and an answer of a worker to the head."""
        self._turns_left -= 1
        if self._turns_left <= 0:
            return None
        if seat != self._head:
            return Handover(self._head, indent_continuation(f"{seat}: {text}"))
        addressed = _ADDRESSED.fullmatch(text)
        if addressed is None:
            return None
        name, order = addressed.groups()
        if name in self._workers:
            return Handover(name, order)
        return Handover(self._head, f"No seat is called {name}; seats: {', '.join(self._workers)}.")

    def turn_after_end(self, seat: str) -> Handover | None:
        """End the conversation if the head left; otherwise inform the head."""
        if seat == self._head:
            return None
        self._workers.remove(seat)
        return Handover(self._head, f"{seat} has left.")
