"""Answers tool calls from a library: validates arguments and truncates answers.

Answers are JSON objects. Their size is that of their compact UTF-8 text. An answer that exceeds its
limit is reduced: a page is truncated and names the next offset; a list of results gets shorter
snippets, then fewer results.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

from fumehood_snapshots.errors import Refusal, RefusalCode
from fumehood_snapshots.format.hashing import canonical_json
from fumehood_snapshots.index.filters import Filter
from fumehood_snapshots.library.library import Library, Page, SearchResult
from fumehood_snapshots.library.tools import K_MAX, QUERY_CHARS_MAX, REFERENCE_CHARS_MAX

ANSWER_BYTES_MAX = 32_000
DEFAULT_K = 5
SCORE_DIGITS = 4
OPENED_MAX = 64
"""Number of pages kept for further reading."""

Answer = dict[str, Any]


class LibraryReader:
    """The two tools of one episode."""

    def __init__(
        self, library: Library, *, answer_bytes_max: int = ANSWER_BYTES_MAX, k: int = DEFAULT_K
    ) -> None:
        """Store the library.

        Args:
            library: library to search.
            answer_bytes_max: maximum size of one answer.
            k: default number of results.
        """
        self._library = library
        self._answer_bytes_max = answer_bytes_max
        self._k = k
        self._opened: dict[str, Page] = {}
        self._mutex = Lock()

    def search(
        self,
        query: str,
        k: int | None = None,
        filter: Filter | None = None,
        *,
        bytes_max: int | None = None,
    ) -> Answer:
        """Answer a search.

        Args:
            query: 1 to 2,000 characters.
            k: 1 to 50.
            filter: field → value.
            bytes_max: maximum size of this answer, if a budget leaves less.

        Returns:
            ``{"results": [{"id", "url", "title", "snippet", "score"}, …]}``.

        Raises:
            Refusal: an argument is invalid, the limit is too small, or the library refuses.
        """
        _check_text("query", query, QUERY_CHARS_MAX)
        _check_number("k", self._k if k is None else k, 1, K_MAX)
        _check_filter(filter or {})
        results = self._library.search(query, self._k if k is None else k, filter or {})
        return _fitting_results(results, self._limit(bytes_max))

    def open_page(self, page: str, offset: int = 0, *, bytes_max: int | None = None) -> Answer:
        """Answer with a page's text from an offset.

        Args:
            page: an id or a URL.
            offset: in characters.
            bytes_max: maximum size of this answer, if a budget leaves less.

        Returns:
            ``{"id", "url", "title", "text", "offset", "length", "next_offset"}``; the last is None
            at the end of the page.

        Raises:
            Refusal: an argument is invalid, the limit is too small, or the library refuses.
        """
        _check_text("page", page, REFERENCE_CHARS_MAX)
        _check_number("offset", offset, 0, 2**53)
        return _fitting_page(self._page(page, offset), offset, self._limit(bytes_max))

    def open_whole(self, page: str) -> Page:
        """Return a whole page, of any size.

        Raises:
            Refusal: the argument is invalid, or the library refuses.
        """
        _check_text("page", page, REFERENCE_CHARS_MAX)
        return self._library.open_page(page)

    def _page(self, reference: str, offset: int) -> Page:
        # Further reading uses the opened copy, even if the live page has changed.
        with self._mutex:
            opened = self._opened.get(reference) if offset else None
        if opened is None:
            opened = self._library.open_page(reference)
            self._remember(reference, opened)
        if offset > len(opened.text):
            raise Refusal(
                RefusalCode.INVALID_ARGUMENT,
                f"offset {offset} is beyond the page's {len(opened.text)} characters",
            )
        return opened

    def _remember(self, reference: str, page: Page) -> None:
        with self._mutex:
            for name in (reference, page.id):
                self._opened.pop(name, None)
                self._opened[name] = page
            while len(self._opened) > OPENED_MAX:
                self._opened.pop(next(iter(self._opened)))

    def _limit(self, bytes_max: int | None) -> int:
        return min(
            self._answer_bytes_max, bytes_max if bytes_max is not None else self._answer_bytes_max
        )


def answer_bytes(answer: Answer) -> int:
    """Return the size of an answer in bytes."""
    return len(canonical_json(answer))


def _fitting_page(page: Page, offset: int, limit: int) -> Answer:
    rest = page.text[offset : offset + limit]
    while True:
        end = offset + len(rest)
        answer = {
            "id": page.id,
            "url": page.url,
            "title": page.title,
            "text": rest,
            "offset": offset,
            "length": len(page.text),
            "next_offset": end if end < len(page.text) else None,
        }
        excess = answer_bytes(answer) - limit
        if excess <= 0 and (rest or end == len(page.text)):
            return answer
        if not rest:
            # No character fits; an answer without progress would be requested endlessly.
            raise Refusal(RefusalCode.BUDGET_TOO_SMALL, f"{limit} bytes are too few for any answer")
        rest = _shortened(rest, excess)


def _shortened(text: str, excess_bytes: int) -> str:
    """Return ``text`` shortened by about this many bytes, at least one character."""
    kept = len(canonical_json(text)) - 2 - excess_bytes
    # A character has at least one byte in JSON, so this many characters suffice.
    return text[: max(0, min(len(text) - 1, kept))]


def _fitting_results(results: list[SearchResult], limit: int) -> Answer:
    rows: list[Mapping[str, Any]] = [
        {
            "id": result.id,
            "url": result.url,
            "title": result.title,
            "snippet": result.snippet,
            "score": round(result.score, SCORE_DIGITS),
        }
        for result in results
    ]
    answer: Answer = {"results": rows}
    if answer_bytes(answer) > limit:
        share = max(0, (limit - answer_bytes(_without_snippets(answer))) // max(1, len(rows)))
        answer = {"results": [{**row, "snippet": _cut(row["snippet"], share)} for row in rows]}
    while answer["results"] and answer_bytes(answer) > limit:
        answer["results"].pop()
    if answer_bytes(answer) > limit or (rows and not answer["results"]):
        raise Refusal(RefusalCode.BUDGET_TOO_SMALL, f"{limit} bytes are too few for any answer")
    return answer


def _without_snippets(answer: Answer) -> Answer:
    return {"results": [{**row, "snippet": ""} for row in answer["results"]]}


def _cut(text: str, bytes_max: int) -> str:
    """Return the longest prefix of ``text`` with at most this many bytes in JSON."""
    text = text[:bytes_max]
    while (excess := len(canonical_json(text)) - 2 - bytes_max) > 0:
        text = _shortened(text, excess)
    return text


def _check_text(name: str, value: object, chars_max: int) -> None:
    if not isinstance(value, str) or not 1 <= len(value) <= chars_max:
        raise Refusal(
            RefusalCode.INVALID_ARGUMENT, f"{name} must be a text of 1 to {chars_max} characters"
        )


def _check_number(name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise Refusal(
            RefusalCode.INVALID_ARGUMENT, f"{name} must be a whole number from {low} to {high}"
        )


def _check_filter(wanted: object) -> None:
    if not isinstance(wanted, Mapping) or not all(
        isinstance(part, str) for pair in wanted.items() for part in pair
    ):
        raise Refusal(RefusalCode.INVALID_ARGUMENT, "filter must map fields to values")
