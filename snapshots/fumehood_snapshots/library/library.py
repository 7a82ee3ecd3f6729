"""A library: something that finds pages and opens them. Its readers do not know which kind it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fumehood_snapshots.index.filters import Filter


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One result as an agent sees it."""

    id: str
    """What to cite; also opens the page."""
    url: str
    title: str
    snippet: str
    score: float


@dataclass(frozen=True, slots=True)
class Page:
    """A page as an agent sees it."""

    id: str
    url: str
    title: str
    text: str


class Library(Protocol):
    """Finds pages and opens them."""

    def search(self, query: str, k: int, wanted: Filter) -> list[SearchResult]:
        """Return at most ``k`` results, best first.

        Raises:
            Refusal: the query cannot be served.
        """
        ...

    def open_page(self, reference: str) -> Page:
        """Return the page with this id or URL.

        Raises:
            Refusal: there is none, or it cannot be had.
        """
        ...
