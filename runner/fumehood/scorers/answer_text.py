"""Finds values in answers, and bounds the length of answers, so that none can list all values."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

CHARS_PER_WORD = 30
"""Mean number of characters of each permitted word, with the space after it, at most."""
_WORD = re.compile(r"\d+\.\d+|\w+")
"""A number with decimals, or a word. Signs, also invisible ones, separate words."""
_NUMBER_BEGINS = r"(?<![\w.])(?<!(?<!\w)[-\u2212+])(?:(?<!\d,)|(?!\d{3}(?!\d)))"
"""Not within another number, such as 7 in 3.7 and -7, and 400 in 3,400. A hyphen between words is
no sign: ISO-8601."""
_NUMBER_ENDS = r"(?!\w|\.\d|,\d{3}(?!\d))"
_SIGN = r"[^\w\s\"'`.,;:!?()\[\]{}]"
"""A sign that is no punctuation. A value of signs is not a part of several signs."""


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


def contains_words(text: str, value: str, *, in_names: bool, has_plural: bool) -> bool:
    """Return whether a text contains a value as whole words.

    One long word must not contain many values, so 12 is not in 112, and neither is -I in built-in.

    Args:
        text: without marks, as the value; see :func:`without_marks`.
        value: not empty.
        in_names: whether ``json`` is in ``json.loads``.
        has_plural: whether a value that ends with a letter is also in its plural with ``s``.
    """
    dot = "" if in_names else "."
    if value[:1].isdecimal():
        before = _NUMBER_BEGINS
    else:
        before = rf"(?<![\w{dot}])" if _has_words(value) else f"(?<!{_SIGN})"
    if value[-1:].isdecimal():
        after = _NUMBER_ENDS
    elif _has_words(value[-1:]):
        plural = "(?:e?s)?" if has_plural and value[-1:].isalpha() else ""
        after = plural + (r"(?!\w)" if in_names else r"(?!\w|\.\w)")
    else:
        after = "" if _has_words(value) else f"(?!{_SIGN})"
    return re.search(f"{before}{re.escape(value)}{after}", text) is not None


def _has_words(text: str) -> bool:
    return re.search(r"\w", text) is not None


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
