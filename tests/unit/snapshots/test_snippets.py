"""A snippet is the window that holds the most words of the query, centred."""

from __future__ import annotations

import pytest

from fumehood_snapshots.analysis.analyzer import Analyzer
from fumehood_snapshots.analysis.spec import analysis_spec
from fumehood_snapshots.snippets import (
    QueryWords,
    best_snippet,
    densest_span,
    occurrences,
    window_around,
)

ANALYZER = Analyzer(analysis_spec())


def _query(text: str) -> QueryWords:
    return QueryWords(ANALYZER.terms(text), ANALYZER)


def test_occurrences_in_any_form_have_offsets_in_the_original() -> None:
    text = "İstanbul: Cats, a cat; concatenate CAT'S"
    assert [text[start:end] for start, end in occurrences(text, _query("cat"))] == [
        "Cats",
        "cat",
        "CAT",
    ]


def test_a_short_document_is_its_own_snippet() -> None:
    assert best_snippet("short", _query("absent"), 100).text == "short"


def test_without_an_occurrence_the_snippet_is_the_beginning() -> None:
    snippet = best_snippet("abc " * 100, _query("absent"), 10)
    assert (snippet.text, snippet.start) == ("abc abc ab", 0)


def test_the_densest_span_is_preferred_to_the_first() -> None:
    text = "cat " + "x " * 100 + "cat cat cat " + "x " * 100
    snippet = best_snippet(text, _query("cats"), 40)
    assert snippet.text.count("cat") == 3
    assert snippet.start == (204 + 215) // 2 - 20


@pytest.mark.parametrize(
    ("spans", "limit", "best"),
    [
        ([], 10, (0, 0)),
        ([(0, 3), (20, 23)], 10, (0, 3)),
        ([(0, 3), (5, 8), (30, 33)], 8, (0, 8)),
        ([(0, 3), (5, 9), (30, 33)], 8, (0, 3)),
        ([(0, 50)], 8, (0, 50)),
    ],
    ids=["none", "equally dense: the first", "just fits", "just does not", "longer than the limit"],
)
def test_the_densest_span_is_no_longer_than_the_limit(
    spans: list[tuple[int, int]], limit: int, best: tuple[int, int]
) -> None:
    assert densest_span(spans, limit) == best


@pytest.mark.parametrize(
    ("span", "window"),
    [((0, 4), (0, 20)), ((50, 54), (42, 62)), ((96, 100), (80, 100))],
    ids=["at the beginning", "in the middle", "at the end"],
)
def test_the_window_uses_the_whole_limit_and_stays_inside(
    span: tuple[int, int], window: tuple[int, int]
) -> None:
    assert window_around(span, 20, 100) == window
