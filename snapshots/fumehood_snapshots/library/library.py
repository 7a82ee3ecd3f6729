"""A library searches pages and opens them; its kind is transparent to readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Protocol

from fumehood_snapshots.captures.capture import Capture
from fumehood_snapshots.captures.store import CaptureStore
from fumehood_snapshots.errors import FetchFailed, FetchFailure, Refusal, RefusalCode
from fumehood_snapshots.extraction.pages import (
    UnreadablePageError,
    clean,
    decode_page,
    extract_page,
)
from fumehood_snapshots.index.filters import Filter
from fumehood_snapshots.snapshot import Snapshot
from fumehood_snapshots.sources.warc import page_id
from fumehood_snapshots.web.fetcher import Fetcher
from fumehood_snapshots.web.providers import SearchProvider


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One search result as the agent receives it."""

    id: str
    """ID for citations and for opening the page."""
    url: str
    title: str
    snippet: str
    score: float


@dataclass(frozen=True, slots=True)
class Page:
    """A page as the agent receives it."""

    id: str
    url: str
    title: str
    text: str
    source: Callable[[], str] | None = field(default=None, compare=False)
    """Returns the page as it was served; None if only its text is known."""


class Library(Protocol):
    """Searches pages and opens them."""

    def search(self, query: str, k: int, wanted: Filter) -> list[SearchResult]:
        """Return at most ``k`` results, best first.

        Raises:
            Refusal: the query cannot be served.
        """
        ...

    def open_page(self, reference: str) -> Page:
        """Return the page with this ID or URL.

        Raises:
            Refusal: there is no such page, or it is unreachable.
        """
        ...


class SealedLibrary:
    """Searches and opens documents of one snapshot, without the network."""

    def __init__(self, snapshot: Snapshot, snippet_chars: int | None = None) -> None:
        """Store the snapshot; its manifest has the default length of a snippet."""
        self._snapshot = snapshot
        self._snippet_chars = snippet_chars

    def search(self, query: str, k: int, wanted: Filter) -> list[SearchResult]:
        """Return at most ``k`` documents by (−score, id).

        Raises:
            Refusal: the filter names an unknown field.
        """
        hits = self._snapshot.search(query, k, wanted, self._snippet_chars)
        return [SearchResult(hit.id, hit.url, hit.title, hit.snippet, hit.score) for hit in hits]

    def open_page(self, reference: str) -> Page:
        """Return the document with this ID or URL.

        Raises:
            Refusal: the snapshot has no such document.
        """
        document = self._snapshot.find(reference)
        if document is None:
            raise Refusal(RefusalCode.NOT_FOUND, "there is no page with this ID or URL")
        source = partial(self._source, document.capture) if document.capture else None
        return Page(document.id, document.url, document.title, document.text, source)

    def _source(self, record_id: str) -> str:
        return page_source(self._captures.read(record_id))

    @cached_property
    def _captures(self) -> CaptureStore:
        return self._snapshot.captures()


class LiveLibrary:
    """Fetches pages when they are opened. Thread-safe."""

    def __init__(self, fetcher: Fetcher, provider: SearchProvider | None, extractor: str) -> None:
        """Create a library without a snapshot.

        Args:
            fetcher: fetches pages.
            provider: answers queries; None if searches are not possible.
            extractor: name of the extractor for the text of pages.
        """
        self._fetcher = fetcher
        self._provider = provider
        self._extractor = extractor
        self._urls: dict[str, str] = {}

    def search(self, query: str, k: int, wanted: Filter) -> list[SearchResult]:
        """Return at most ``k`` results of the provider.

        Raises:
            Refusal: there is no provider, it failed, or a filter was given.
        """
        if wanted:
            raise Refusal(RefusalCode.INVALID_ARGUMENT, "a live search supports no filter")
        if self._provider is None:
            raise Refusal(
                RefusalCode.NOT_FOUND, "this run has no search; pages can be opened by URL"
            )
        results = []
        for hit in self._provider.search(query, k):
            url = clean(hit.url)
            self._urls[page_id(url)] = url
            snippet = clean(hit.snippet)
            results.append(SearchResult(page_id(url), url, clean(hit.title), snippet, hit.score))
        return results

    def open_page(self, reference: str) -> Page:
        """Fetch a page, named by its URL or the ID of an earlier result, and return its text.

        Raises:
            Refusal: it is unreachable, does not exist, or is not text.
        """
        capture = self._fetcher.fetch(self._urls.get(reference, reference))
        if capture.status is None or not 200 <= capture.status < 300:
            raise Refusal(RefusalCode.NOT_FOUND, f"the server answered {capture.status}")
        try:
            extracted = extract_page(capture.body, capture.content_type, self._extractor)
        except UnreadablePageError as error:
            raise FetchFailed(
                FetchFailure.BROKEN_RESPONSE, f"the page cannot be read: {error}"
            ) from error
        self._urls[page_id(capture.uri)] = capture.uri
        return Page(
            page_id(capture.uri),
            capture.uri,
            extracted.title,
            extracted.text,
            partial(page_source, capture),
        )


def page_source(capture: Capture) -> str:
    """Return a page as it was served, as text."""
    return clean(decode_page(capture.body, capture.content_type))
