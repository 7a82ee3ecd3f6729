"""Two seats that answer each other, until one says a word that ends it: an agent and its user."""

from __future__ import annotations

from fumehood.core.conversation import Handover
from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.turn_policies.settings import (
    TURNS_MAX,
    check_names,
    count_setting,
    known_seat,
    seat_setting,
    text_setting,
)


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
