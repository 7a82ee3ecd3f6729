"""The best window of a document for a query, in time linear in the document.

The rule is the one of the paper this package can reproduce (UniACE, arXiv 2605.27898): find every occurrence
of a term of the query; two pointers walk over them and find the span with the most occurrences that is no
longer than the limit; the span is then centred in a window that uses the whole limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fumehood_snapshots.analysis.analyzer import Analyzer
from fumehood_snapshots.analysis.spec import find_word_spans

Span = tuple[int, int]
"""Where something begins and ends, in characters."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A window into a document."""

    text: str
    start: int
    """In characters from the beginning of the document."""


class QueryWords(dict[str, bool]):
    """Word → whether it is indexed under a term of one query; remembers, so it serves many documents."""

    def __init__(self, terms: Iterable[str], analyzer: Analyzer) -> None:
        """Take note of the terms.

        Args:
            terms: of the query, as the analyzer makes them.
            analyzer: the one that made them.
        """
        super().__init__()
        self._terms = frozenset(terms)
        self._analyzer = analyzer

    def __missing__(self, word: str) -> bool:
        found = self[word] = not self._terms.isdisjoint(self._analyzer.terms(word))
        return found


def best_snippet(text: str, query: QueryWords, limit_chars: int) -> Snippet:
    """Return the window with the most words of the query; the beginning where there are none.

    Args:
        text: of the document.
        query: the words to look for.
        limit_chars: longest window, at least 1.
    """
    if len(text) <= limit_chars:
        return Snippet(text, 0)
    span = densest_span(occurrences(text, query), limit_chars)
    start, end = window_around(span, limit_chars, len(text))
    return Snippet(text[start:end], start)


def occurrences(text: str, query: QueryWords) -> list[Span]:
    """Return where each word of the query lies, in order."""
    return [match.span() for match in find_word_spans(text) if query[match.group()]]


def densest_span(spans: list[Span], limit_chars: int) -> Span:
    """Return the first span of at most ``limit_chars`` that holds the most of ``spans``.

    Args:
        spans: in order and not overlapping.
        limit_chars: longest span; one occurrence that is itself longer counts as a span.

    Returns:
        ``(0, 0)`` when there are none.
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
    """Return the window of ``limit_chars`` with ``span`` in its middle, moved to lie inside the document."""
    middle = (span[0] + span[1]) // 2
    start = max(0, min(middle - limit_chars // 2, length - limit_chars))
    return start, min(length, start + limit_chars)
