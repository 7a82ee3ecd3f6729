"""Fetches seeds and linked pages, breadth first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urljoin

from fumehood_snapshots.captures.capture import Capture
from fumehood_snapshots.documents.urls import canonical_url
from fumehood_snapshots.errors import FetchFailed, FetchFailure
from fumehood_snapshots.extraction.pages import HTML_TYPES, media_type_and_charset
from fumehood_snapshots.web.fetcher import Fetcher


@dataclass(frozen=True, slots=True)
class CrawlLimits:
    """Limits of a crawl."""

    depth: int = 0
    """Maximum distance from a seed; 0 fetches the seeds only."""
    pages_max: int = 1000
    pause_seconds: float = 0.5
    """Delay between two fetches."""


@dataclass(frozen=True, slots=True)
class Visited:
    """Result of one URL."""

    url: str
    capture: Capture | None
    failure: FetchFailed | None


def crawl(
    fetcher: Fetcher,
    seeds: Sequence[str],
    limits: CrawlLimits,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Visited]:
    """Fetch the seeds and linked pages, each URL once.

    Links to refused hosts are skipped silently; refused seeds are reported.

    Args:
        fetcher: a live fetcher, usually a recording one.
        seeds: first URLs, in order.
        limits: limits of the crawl.
        sleep: function that waits, in seconds.
    """
    level = list(dict.fromkeys(map(canonical_url, seeds)))
    seen, visited = set(level), 0
    for depth in range(limits.depth + 1):
        following: list[str] = []
        for url in level:
            if visited >= limits.pages_max:
                return
            sleep(limits.pause_seconds if visited else 0)
            outcome = _visit(fetcher, url)
            if (
                depth
                and outcome.failure
                and outcome.failure.failure is FetchFailure.HOST_NOT_ALLOWED
            ):
                continue
            visited += 1
            yield outcome
            fresh = [link for link in links(outcome.capture) if link not in seen]
            seen.update(fresh)
            following.extend(dict.fromkeys(fresh))
        level = following


def _visit(fetcher: Fetcher, url: str) -> Visited:
    try:
        return Visited(url, fetcher.fetch(url), None)
    except FetchFailed as failure:
        return Visited(url, None, failure)


def links(capture: Capture | None) -> list[str]:
    """Return the canonical URLs that a page links to, in page order."""
    from resiliparse.parse.html import HTMLTree

    if capture is None or media_type_and_charset(capture.content_type)[0] not in HTML_TYPES:
        return []
    tree = HTMLTree.parse_from_bytes(capture.body)
    body = tree.body
    if body is None:
        return []
    targets = (anchor.getattr("href") or "" for anchor in body.query_selector_all("a[href]"))
    joined = (_joined(capture.uri, target) for target in targets)
    return [url for url in joined if url.startswith(("http://", "https://"))]


def _joined(base: str, target: str) -> str:
    try:
        return canonical_url(urljoin(base, target.strip()))
    except ValueError:
        return ""
