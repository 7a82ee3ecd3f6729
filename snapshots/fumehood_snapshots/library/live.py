"""A library over a fetcher and a search provider: the network, or a recording of it."""

from __future__ import annotations

from fumehood_snapshots.errors import FetchFailed, FetchFailure, Refusal, RefusalCode
from fumehood_snapshots.extraction.extracted import UnreadablePageError
from fumehood_snapshots.extraction.pages import clean, extract_page
from fumehood_snapshots.index.filters import Filter
from fumehood_snapshots.library.library import Page, SearchResult
from fumehood_snapshots.sources.warc import page_id
from fumehood_snapshots.web.fetcher import Fetcher
from fumehood_snapshots.web.providers import SearchProvider


class LiveLibrary:
    """Fetches pages when they are opened. May be used from several threads at once."""

    def __init__(self, fetcher: Fetcher, provider: SearchProvider | None, extractor: str) -> None:
        """Take note.

        Args:
            fetcher: gets pages; live, recording or replaying.
            provider: answers searches; None means that there is no search.
            extractor: finds the main text of HTML; a snapshot built from the recording should use the same.
        """
        self._fetcher = fetcher
        self._provider = provider
        self._extractor = extractor
        self._urls: dict[str, str] = {}

    def search(self, query: str, k: int, wanted: Filter) -> list[SearchResult]:
        """Return at most ``k`` results of the provider.

        Raises:
            Refusal: there is no provider, it failed, or a filter was asked for, which it does not have.
        """
        if wanted:
            raise Refusal(RefusalCode.INVALID_ARGUMENT, "a live search has no fields to filter by")
        if self._provider is None:
            raise Refusal(
                RefusalCode.NOT_FOUND, "this environment has no search, only pages to open"
            )
        results = []
        for found in self._provider.search(query, k):
            url = clean(found.url)
            self._urls[page_id(url)] = url
            snippet = clean(found.snippet)
            results.append(
                SearchResult(page_id(url), url, clean(found.title), snippet, found.score)
            )
        return results

    def open_page(self, reference: str) -> Page:
        """Fetch a page and return its text.

        Args:
            reference: a URL, or the id of a result of an earlier search or page.

        Raises:
            Refusal: it cannot be had, is not there, or is not text.
        """
        capture = self._fetcher.fetch(self._urls.get(reference, reference))
        if capture.status is None or not 200 <= capture.status < 300:
            raise Refusal(RefusalCode.NOT_FOUND, f"the server answered {capture.status}")
        try:
            found = extract_page(capture.body, capture.content_type, self._extractor)
        except UnreadablePageError as error:
            raise FetchFailed(
                FetchFailure.BROKEN_RESPONSE, f"the page cannot be read: {error}"
            ) from error
        self._urls[page_id(capture.uri)] = capture.uri
        return Page(page_id(capture.uri), capture.uri, found.title, found.text)
