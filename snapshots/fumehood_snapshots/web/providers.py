"""Live search: the interface of search providers.

A provider sends its requests through a fetcher, so policy and recording also apply to searches.
"""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Protocol
from urllib.parse import unquote, urlencode, urlsplit

import numpy as np

from fumehood_snapshots.analysis.analyzer import Analyzer
from fumehood_snapshots.analysis.spec import analysis_spec
from fumehood_snapshots.errors import FetchFailed, FetchFailure
from fumehood_snapshots.index.selection import best
from fumehood_snapshots.web.fetcher import Fetcher


@dataclass(frozen=True, slots=True)
class Found:
    """One result of a live search."""

    url: str
    title: str
    snippet: str
    score: float


class SearchProvider(Protocol):
    """Searches pages."""

    def search(self, query: str, k: int) -> list[Found]:
        """Return at most ``k`` results, best first.

        Raises:
            FetchFailed: the provider is unreachable, or its answer is invalid.
            Refusal: the recording has no response.
        """
        ...


class SearxngProvider:
    """Sends searches to one endpoint."""

    def __init__(self, endpoint: str, fetcher: Fetcher) -> None:
        """Store the endpoint.

        Args:
            endpoint: such as ``https://search.example.org/search``.
            fetcher: fetcher whose policy allows it.
        """
        self._endpoint = endpoint
        self._fetcher = fetcher

    def search(self, query: str, k: int) -> list[Found]:
        """Return the first ``k`` results in the order of the engine.

        Raises:
            FetchFailed: it is unreachable, or its answer is invalid.
        """
        query_string = urlencode({"q": query, "format": "json"})
        body = _fetched(self._fetcher, f"{self._endpoint}?{query_string}", "the search provider")
        try:
            results = json.loads(body)["results"]
            return [_found(result) for result in results[:k]]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise FetchFailed(
                FetchFailure.BROKEN_RESPONSE,
                "the search provider's answer is not a list of results",
            ) from error


def _fetched(fetcher: Fetcher, url: str, name: str) -> bytes:
    capture = fetcher.fetch(url)
    if capture.status != 200:
        raise FetchFailed(FetchFailure.BROKEN_RESPONSE, f"{name} answered {capture.status}")
    return capture.body


def _found(result: dict[str, Any]) -> Found:
    score = float(result.get("score") or 0)
    title, snippet = str(result.get("title") or ""), str(result.get("content") or "")
    return Found(str(result["url"]), title, snippet, score if math.isfinite(score) else 0.0)


PAGES_MAX = 50_000
"""The limit of a sitemap."""

_LOCATION = re.compile(rb"<loc>\s*([^<]{1,4096}?)\s*</loc>")


class SiteIndexProvider:
    """Ranks the pages of one site. Thread-safe."""

    def __init__(self, index_url: str, fetcher: Fetcher) -> None:
        """Store the URL; the index is fetched on the first search.

        Args:
            index_url: URL of a sitemap, or of JSON such as ``[{"url": …, "title": …, "description":
                …}]``.
            fetcher: fetcher whose policy allows it.
        """
        self._index_url = index_url
        self._fetcher = fetcher
        self._analyzer = Analyzer(analysis_spec())
        self._pages: list[Found] | None = None
        self._bm25: Any = None
        self._mutex = Lock()

    def search(self, query: str, k: int) -> list[Found]:
        """Return the ``k`` best pages.

        Raises:
            FetchFailed: the index is unreachable, or lists no page.
        """
        with self._mutex:
            pages = self._pages if self._pages is not None else self._load()
        known = self._bm25.vocab_dict
        terms = [term for term in sorted(self._analyzer.terms(query)) if term in known]
        if not terms:
            return []
        scores = self._bm25.get_scores(terms).astype(np.float32)
        return [
            replace(pages[number], score=float(scores[number]))
            for number in best(scores, k).tolist()
        ]

    def _load(self) -> list[Found]:
        from bm25s import BM25

        pages = read_site_index(_fetched(self._fetcher, self._index_url, "the site index"))
        if not pages:
            raise FetchFailed(FetchFailure.BROKEN_RESPONSE, "the site index lists no page")
        texts = (f"{page.title} {page.snippet} {_words(page.url)}" for page in pages)
        self._bm25 = BM25(backend="numpy", csc_backend="numpy")
        self._bm25.index([self._analyzer.terms(text) for text in texts], show_progress=False)
        self._pages = pages
        return pages


def read_site_index(body: bytes) -> list[Found]:
    """Return the pages of a sitemap or a JSON list, sorted by URL; skip entries without a URL.

    Locations are found by a pattern, because foreign XML can expand without bound.
    """
    try:
        entries = json.loads(body)
    except (ValueError, RecursionError):
        urls = (
            html.unescape(match.decode("utf-8", "replace")) for match in _LOCATION.findall(body)
        )
        entries = [{"url": url} for url in urls]
    entries = entries if isinstance(entries, list) else []
    pages = {
        str(entry["url"]): Found(
            str(entry["url"]),
            str(entry.get("title") or ""),
            str(entry.get("description") or ""),
            0.0,
        )
        for entry in entries[:PAGES_MAX]
        if isinstance(entry, dict) and entry.get("url")
    }
    return [pages[url] for url in sorted(pages)]


def _words(url: str) -> str:
    try:
        return unquote(urlsplit(url).path)
    except ValueError:
        return ""
