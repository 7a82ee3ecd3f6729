"""Bounds the length of answers, so that an answer cannot list all possible values."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

CHARS_PER_WORD = 30
"""Mean number of characters of each permitted word, with the space after it, at most."""
_WORD = re.compile(r"\d+\.\d+|\w+")
"""A number with decimals, or a word. Signs, also invisible ones, separate words."""


def has_at_most(text: str, words_max: int, values: Sequence[str]) -> bool:
    """Return whether a text has at most a number of words, however they are separated.

    Args:
        text: of the answer.
        words_max: permitted words.
        values: that the text must contain. What is between two spaces in them is one word.
    """
    within = sum(max(0, _count(value) - len(value.split())) for value in values)
    return (
        len(text) <= words_max * CHARS_PER_WORD + sum(map(len, values))
        and len(text.split()) <= words_max
        and _count(text) <= words_max + within
    )


def _count(text: str) -> int:
    return len(_WORD.findall(without_marks(text)))


def without_marks(text: str) -> str:
    """Return a text without the marks that belong to letters, such as vowels of Devanagari.

    Marks after ASCII characters remain: with them, an agent could join words. Search values only in
    this form, because a mark that is a part of a letter here separates words in the text itself.
    """
    kept = ""
    for sign in unicodedata.normalize("NFC", text):
        if kept and not kept[-1].isascii() and unicodedata.category(sign).startswith("M"):
            continue
        kept += sign
    return kept
