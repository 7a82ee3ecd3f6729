"""Replaces characters by their usual forms, such as ``ﬁ`` by ``fi``."""

from __future__ import annotations

from functools import lru_cache
from unicodedata import normalize


def usual_characters(text: str) -> str:
    """Return a text in the form NFKD, except that accents in a row keep their order.

    Each character is replaced separately. The form NFKD of a whole text sorts accents in a row,
    which takes quadratic time, and an agent can write many of them. Source: Unicode, UAX #15.
    """
    return text if text.isascii() else "".join(map(_usual_form, text))


@lru_cache(maxsize=4096)
def _usual_form(character: str) -> str:
    return normalize("NFKD", character)
