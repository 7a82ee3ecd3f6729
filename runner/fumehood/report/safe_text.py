"""Text from a box, made harmless for a terminal and for a page."""

from __future__ import annotations

import unicodedata

_KEPT = frozenset("\n\t")


def safe(text: str) -> str:
    """Return ``text`` with control, format and private characters shown as escapes.

    An agent writes what it likes: colours, cursor moves, right-to-left overrides. Nothing must obey them.
    """
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(_escape(character) for character in text)


def _escape(character: str) -> str:
    if character in _KEPT or unicodedata.category(character)[0] != "C":
        return character
    return character.encode("unicode_escape").decode("ascii")
