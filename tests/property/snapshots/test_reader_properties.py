"""No answer exceeds its limit, and reading in parts loses nothing."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from fumehood_snapshots.errors import Refusal
from fumehood_snapshots.library.library import Page, SearchResult
from fumehood_snapshots.library.reader import LibraryReader, answer_bytes

TEXTS = st.text(max_size=300) | st.text('"\\\n\u2028é\U0001f989', max_size=300)


class _Shelf:
    """A library of one page."""

    def __init__(self, text: str) -> None:
        self.text = text

    def search(self, query: str, k: int, wanted: Mapping[str, object]) -> list[SearchResult]:
        return [
            SearchResult(f"{number}", "", self.text[:20], self.text, 1 / 3) for number in range(k)
        ]

    def open_page(self, reference: str) -> Page:
        return Page("1", "https://e.example/", self.text[:20], self.text)


@given(text=TEXTS, limit=st.integers(1, 2000))
@settings(deadline=None)
def test_a_page_is_read_completely_in_parts_within_the_limit(text: str, limit: int) -> None:
    reader = LibraryReader(_Shelf(text), answer_bytes_max=limit)
    whole, offset = "", 0
    try:
        while offset is not None:
            answer = reader.open_page("1", offset)
            assert answer_bytes(answer) <= limit
            assert answer["next_offset"] != offset
            whole, offset = whole + answer["text"], answer["next_offset"]
    except Refusal:
        assert limit < 1200
    else:
        assert whole == text


@given(text=TEXTS, limit=st.integers(1, 3000), k=st.integers(1, 12))
@settings(deadline=None)
def test_results_fit_the_limit_in_their_order(text: str, limit: int, k: int) -> None:
    try:
        answer = LibraryReader(_Shelf(text), answer_bytes_max=limit).search("x", k)
    except Refusal:
        assert limit < 700
    else:
        assert answer_bytes(answer) <= limit
        assert [result["id"] for result in answer["results"]] == [
            f"{n}" for n in range(len(answer["results"]))
        ]
        assert answer["results"]


@given(text=TEXTS, k=st.integers(1, 12), share=st.integers(0, 300))
@settings(deadline=None)
def test_snippets_are_shortened_before_results_are_left_out(text: str, k: int, share: int) -> None:
    library = _Shelf(text)
    empty = LibraryReader(library, answer_bytes_max=10**6).search("x", k)
    for result in empty["results"]:
        result["snippet"] = ""
    limit = answer_bytes(empty) + share
    assert len(LibraryReader(library, answer_bytes_max=limit).search("x", k)["results"]) == k
