"""What every rule reads from its settings, and how it complains."""

from __future__ import annotations

from collections.abc import Iterable

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
