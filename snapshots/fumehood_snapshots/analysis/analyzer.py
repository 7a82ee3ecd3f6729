"""Analyzer: converts text to terms, equally at build time and at query time."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Literal, cast

from fumehood_snapshots.analysis.spec import AnalysisSpec, find_words, stem_function

REMEMBERED_WORDS_MAX = 1_000_000

# In ASCII text the pattern matches runs of letters and digits. Translating all other characters to
# blanks and splitting gives the same words four times faster.
_ASCII = [chr(code) for code in range(128)]
_ASCII_WORDS = str.maketrans({char: char if char.isalnum() else " " for char in _ASCII})
_ASCII_LOWER_WORDS = str.maketrans(
    {char: char.lower() if char.isalnum() else " " for char in _ASCII}
)


class Analyzer:
    """Splits text as an :class:`AnalysisSpec` states; caches the term of each word."""

    def __init__(self, spec: AnalysisSpec) -> None:
        self._spec = spec
        self._stop_words = frozenset(spec.stop_words)
        self._stem: Callable[[str], str] = stem_function(spec.stemmer)
        self._ascii_words = _ASCII_LOWER_WORDS if spec.lowercase else _ASCII_WORDS
        self._terms: dict[str, str | None] = {}

    def words(self, text: str) -> list[str]:
        """Return the normalised words of ``text`` in order, with stop words, not stemmed."""
        if text.isascii():
            return text.translate(self._ascii_words).split()
        if self._spec.normal_form != "none":
            form = cast(Literal["NFC", "NFD", "NFKC", "NFKD"], self._spec.normal_form)
            text = unicodedata.normalize(form, text)
        return find_words(text.lower() if self._spec.lowercase else text)

    def term(self, word: str) -> str | None:
        """Return the term of one word of :meth:`words`, or None if it is not indexed."""
        try:
            return self._terms[word]
        except KeyError:
            return self._learn(word)

    def terms(self, text: str) -> list[str]:
        """Return the terms of ``text`` in order, with repetitions."""
        terms = (self.term(word) for word in self.words(text))
        return [term for term in terms if term is not None]

    def _learn(self, word: str) -> str | None:
        if len(self._terms) >= REMEMBERED_WORDS_MAX:
            self._terms.clear()
        dropped = len(word) > self._spec.term_chars_max or word in self._stop_words
        term = None if dropped else self._stem(word)
        self._terms[word] = term
        return term
