"""One reader of a library: arguments checked, answers cut to size, allowance kept.

Answers are JSON objects. Their size is that of their compact UTF-8 text, and no answer is larger than what
was granted for it: a page is cut and says where it goes on, a list of results gets shorter snippets and, if
that is not enough, fewer results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from fumehood_snapshots.errors import Refusal, RefusalCode
from fumehood_snapshots.format.hashing import canonical_json
from fumehood_snapshots.index.filters import Filter
from fumehood_snapshots.library.allowance import Allowance, AllowanceLedger
from fumehood_snapshots.library.library import Library, Page, SearchResult
from fumehood_snapshots.library.tools import K_MAX, QUERY_CHARS_MAX, REFERENCE_CHARS_MAX

ANSWER_BYTES_MAX = 32_000
DEFAULT_K = 5
SCORE_DIGITS = 4
OPENED_MAX = 64
"""References to pages that are kept to be read on."""

Answer = dict[str, Any]


class LibraryReader:
    """The two tools for one episode."""

    def __init__(
        self,
        library: Library,
        allowance: Allowance | None = None,
        *,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
        k: int = DEFAULT_K,
    ) -> None:
        """Take note.

        Args:
            library: where to search.
            allowance: for the whole episode; None means no bound.
            answer_bytes_max: of one answer.
            k: results of a search that does not say how many.
        """
        self._library = library
        self._ledger = AllowanceLedger(allowance or Allowance())
        self._answer_bytes_max = answer_bytes_max
        self._k = k
        self._opened: dict[str, Page] = {}
        self._mutex = Lock()

    @property
    def spent(self) -> Allowance:
        """Calls and bytes so far."""
        return self._ledger.spent

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
            filter: field → value; the name is the one agents use.
            bytes_max: of this answer, where a budget leaves less than usual.

        Returns:
            ``{"results": [{"id", "url", "title", "snippet", "score"}, …]}``.

        Raises:
            Refusal: an argument is unfit, the allowance is spent, or the library refuses.
        """
        _check_text("query", query, QUERY_CHARS_MAX)
        _check_number("k", self._k if k is None else k, 1, K_MAX)
        _check_filter(filter or {})
        return self._within_allowance(
            lambda granted: _fitting_results(
                self._library.search(query, self._k if k is None else k, filter or {}), granted
            ),
            bytes_max,
        )

    def open_page(self, page: str, offset: int = 0, *, bytes_max: int | None = None) -> Answer:
        """Answer with a page's text from a character on.

        Args:
            page: an id or a URL.
            offset: in characters.
            bytes_max: of this answer, where a budget leaves less than usual.

        Returns:
            ``{"id", "url", "title", "text", "offset", "length", "next_offset"}``; the last is None where the
            page ends.

        Raises:
            Refusal: an argument is unfit, the allowance is spent, or the library refuses.
        """
        _check_text("page", page, REFERENCE_CHARS_MAX)
        _check_number("offset", offset, 0, 2**53)
        return self._within_allowance(
            lambda granted: _fitting_page(self._page(page, offset), offset, granted), bytes_max
        )

    def _page(self, reference: str, offset: int) -> Page:
        # A page is read on from the copy that was opened, even if the live one has changed since.
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

    def _within_allowance(self, answer: Callable[[int], Answer], bytes_max: int | None) -> Answer:
        most = (
            self._answer_bytes_max if bytes_max is None else min(bytes_max, self._answer_bytes_max)
        )
        granted = self._ledger.reserve(most)
        used = 0
        try:
            answered = answer(granted)
            used = answer_bytes(answered)
            return answered
        finally:
            self._ledger.settle(granted, used)


def answer_bytes(answer: Answer) -> int:
    """Return the size of an answer as the allowance counts it."""
    return len(canonical_json(answer))


def _fitting_page(page: Page, offset: int, granted: int) -> Answer:
    rest = page.text[offset : offset + granted]
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
        excess = answer_bytes(answer) - granted
        if excess <= 0 and (rest or end == len(page.text)):
            return answer
        if not rest:
            # Not even a character fits: an answer that makes no headway would be asked for without end.
            raise Refusal(
                RefusalCode.ALLOWANCE_SPENT, f"{granted} bytes are too few for any answer"
            )
        rest = _shortened(rest, excess)


def _shortened(text: str, excess_bytes: int) -> str:
    """Return ``text`` without about so many bytes of its end, at least one character."""
    kept = len(canonical_json(text)) - 2 - excess_bytes
    # A character has at least one byte in JSON, so a text of that many characters is not too short.
    return text[: max(0, min(len(text) - 1, kept))]


def _fitting_results(results: list[SearchResult], granted: int) -> Answer:
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
    if answer_bytes(answer) > granted:
        share = max(0, (granted - answer_bytes(_without_snippets(answer))) // max(1, len(rows)))
        answer = {"results": [{**row, "snippet": _cut(row["snippet"], share)} for row in rows]}
    while answer["results"] and answer_bytes(answer) > granted:
        answer["results"].pop()
    if answer_bytes(answer) > granted or (rows and not answer["results"]):
        raise Refusal(RefusalCode.ALLOWANCE_SPENT, f"{granted} bytes are too few for any answer")
    return answer


def _without_snippets(answer: Answer) -> Answer:
    return {"results": [{**row, "snippet": ""} for row in answer["results"]]}


def _cut(text: str, bytes_max: int) -> str:
    """Return the longest beginning of ``text`` that takes at most so many bytes in JSON."""
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
