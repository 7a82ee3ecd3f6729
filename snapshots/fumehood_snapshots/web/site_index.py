"""Search over a site's own index: a sitemap, or a JSON list of its pages.

Where no search engine may be asked, a site often says itself which pages it has. The list is fetched once,
through the fetcher like everything else, and ranked by BM25 over titles, descriptions and the words of URLs.
"""

from __future__ import annotations

import html
import json
import re
from threading import Lock
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

from fumehood_snapshots.analysis.analyzer import Analyzer
from fumehood_snapshots.analysis.spec import analysis_spec
from fumehood_snapshots.errors import FetchFailed, FetchFailure
from fumehood_snapshots.index.selection import best
from fumehood_snapshots.web.fetcher import Fetcher
from fumehood_snapshots.web.providers import Found

PAGES_MAX = 50_000
"""As many as a sitemap may have."""

_LOCATION = re.compile(rb"<loc>\s*([^<]{1,4096}?)\s*</loc>")


class SiteIndexProvider:
    """Ranks the pages of one site. May be used from several threads at once."""

    def __init__(self, index_url: str, fetcher: Fetcher) -> None:
        """Take note; the index is fetched with the first search.

        Args:
            index_url: of a sitemap, or of JSON such as ``[{"url": …, "title": …, "description": …}]``.
            fetcher: must be allowed to fetch it.
        """
        self._index_url = index_url
        self._fetcher = fetcher
        self._analyzer = Analyzer(analysis_spec())
        self._pages: list[Found] | None = None
        self._bm25: Any = None
        self._mutex = Lock()

    def search(self, query: str, k: int) -> list[Found]:
        """Return the ``k`` pages whose entry fits best.

        Raises:
            FetchFailed: the index cannot be had or holds no page.
        """
        with self._mutex:
            pages = self._pages if self._pages is not None else self._load()
        known = self._bm25.vocab_dict
        terms = [term for term in sorted(self._analyzer.terms(query)) if term in known]
        if not terms:
            return []
        scores = self._bm25.get_scores(terms).astype(np.float32)
        return [
            Found(
                pages[number].url, pages[number].title, pages[number].snippet, float(scores[number])
            )
            for number in best(scores, k).tolist()
        ]

    def _load(self) -> list[Found]:
        from bm25s import BM25

        capture = self._fetcher.fetch(self._index_url)
        if capture.status != 200:
            raise FetchFailed(
                FetchFailure.BROKEN_RESPONSE, f"the site's index answered {capture.status}"
            )
        pages = read_site_index(capture.body)
        if not pages:
            raise FetchFailed(FetchFailure.BROKEN_RESPONSE, "the site's index lists no page")
        texts = (f"{page.title} {page.snippet} {_words(page.url)}" for page in pages)
        self._bm25 = BM25(backend="numpy", csc_backend="numpy")
        self._bm25.index([self._analyzer.terms(text) for text in texts], show_progress=False)
        self._pages = pages
        return pages


def read_site_index(body: bytes) -> list[Found]:
    """Return the pages that a sitemap or a JSON list names, sorted by URL; entries without one are left out.

    A sitemap is searched for its locations, not parsed: XML from the network can expand without bound.
    """
    try:
        entries = json.loads(body)
    except (ValueError, RecursionError):
        found = (
            html.unescape(match.decode("utf-8", "replace")) for match in _LOCATION.findall(body)
        )
        entries = [{"url": url} for url in found]
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
