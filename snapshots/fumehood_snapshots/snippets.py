"""Selects the best window of a document for a query in linear time.

The rule is that of UniACE (arXiv 2605.27898): find every occurrence of a query term; find with two
pointers the span with the most occurrences within the limit; centre this span in a window of the
full limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fumehood_snapshots.analysis.analyzer import Analyzer
from fumehood_snapshots.analysis.spec import find_word_spans

Span = tuple[int, int]
"""Start and end, in characters."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A window into a document."""

    text: str
    start: int
    """Characters from the beginning of the document."""


class QueryWords(dict[str, bool]):
    """Decides whether a word belongs to a term of one query; caches words across documents."""

    def __init__(self, terms: Iterable[str], analyzer: Analyzer) -> None:
        """Store the terms of a query and the analyzer that produced them."""
        super().__init__()
        self._terms = frozenset(terms)
        self._analyzer = analyzer

    def __missing__(self, word: str) -> bool:
        is_match = self[word] = not self._terms.isdisjoint(self._analyzer.terms(word))
        return is_match


def best_snippet(text: str, query: QueryWords, limit_chars: int) -> Snippet:
    """Return the window with the most query words, or the beginning if there are none.

    Args:
        text: of the document.
        query: the words to find.
        limit_chars: maximum length of the window, at least 1.
    """
    if len(text) <= limit_chars:
        return Snippet(text, 0)
    span = densest_span(occurrences(text, query), limit_chars)
    start, end = window_around(span, limit_chars, len(text))
    return Snippet(text[start:end], start)


def occurrences(text: str, query: QueryWords) -> list[Span]:
    """Return the span of each query word, in order."""
    return [match.span() for match in find_word_spans(text) if query[match.group()]]


def densest_span(spans: list[Span], limit_chars: int) -> Span:
    """Return the first span of at most ``limit_chars`` with the most of ``spans``.

    The spans are in order and do not overlap; ``(0, 0)`` if there are none. A single longer one is
    valid.
    """
    best: Span = (0, 0)
    most = left = 0
    for right, (_, end) in enumerate(spans):
        while left < right and end - spans[left][0] > limit_chars:
            left += 1
        if right - left + 1 > most:
            most, best = right - left + 1, (spans[left][0], end)
    return best


def window_around(span: Span, limit_chars: int, length: int) -> Span:
    """Return the window of ``limit_chars`` centred on ``span`` and moved into the document."""
    middle = (span[0] + span[1]) // 2
    start = max(0, min(middle - limit_chars // 2, length - limit_chars))
    return start, min(length, start + limit_chars)
