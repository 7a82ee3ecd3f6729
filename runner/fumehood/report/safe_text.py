"""Escapes text of untrusted agents for terminals and pages."""

from __future__ import annotations

import unicodedata

_KEPT = frozenset("\n\t")


def safe(text: str) -> str:
    """Escape control, format and private characters.

    Text of an agent may contain terminal colours, cursor movements or right-to-left overrides.
    """
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(_escape(character) for character in text)


def _escape(character: str) -> str:
    if character in _KEPT or unicodedata.category(character)[0] != "C":
        return character
    return character.encode("unicode_escape").decode("ascii")
