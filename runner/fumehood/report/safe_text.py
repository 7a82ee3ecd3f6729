"""Escapes text of untrusted agents and files for terminals and pages."""

from __future__ import annotations

import unicodedata

_KEPT = frozenset("\n\t")
_SEPARATORS = frozenset({"Zl", "Zp"})
"""Categories of U+2028 and U+2029, which begin a new line in some programs."""


def safe(text: str) -> str:
    """Escape control, format and private-use characters, but not line feeds and tabs.

    Text of an agent may contain terminal colours, cursor movements, or bidirectional overrides,
    which show text in another order than it is read (CVE-2021-42574).
    """
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(character if character in _KEPT else _escape(character) for character in text)


def one_line(text: str) -> str:
    """Escape text for one line of a terminal: as :func:`safe`, and line feeds and tabs too."""
    return text if text.isprintable() else "".join(_escape(character) for character in text)


def _escape(character: str) -> str:
    category = unicodedata.category(character)
    if category[0] != "C" and category not in _SEPARATORS:
        return character
    return character.encode("unicode_escape").decode("ascii")
