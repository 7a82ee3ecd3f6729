"""Live search: what answers a query with URLs.

A provider makes its requests through a fetcher, so policy and recording apply to searches as to pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Found:
    """One result of a live search."""

    url: str
    title: str
    snippet: str
    score: float


class SearchProvider(Protocol):
    """Finds pages."""

    def search(self, query: str, k: int) -> list[Found]:
        """Return at most ``k`` results, best first.

        Raises:
            FetchFailed: the provider cannot be reached or answers nonsense.
            Refusal: a recording has no answer.
        """
        ...
