"""A search engine with the JSON interface of SearXNG: ``GET ENDPOINT?q=…&format=json``."""

from __future__ import annotations

import json
import math
from typing import Any
from urllib.parse import urlencode

from fumehood_snapshots.errors import FetchFailed, FetchFailure
from fumehood_snapshots.web.fetcher import Fetcher
from fumehood_snapshots.web.providers import Found


class SearxngProvider:
    """Asks one endpoint."""

    def __init__(self, endpoint: str, fetcher: Fetcher) -> None:
        """Take note.

        Args:
            endpoint: such as ``https://search.example.org/search``.
            fetcher: must be allowed to fetch it.
        """
        self._endpoint = endpoint
        self._fetcher = fetcher

    def search(self, query: str, k: int) -> list[Found]:
        """Return the first ``k`` results in the order of the engine.

        Raises:
            FetchFailed: it cannot be reached or does not answer as such an engine does.
        """
        capture = self._fetcher.fetch(
            f"{self._endpoint}?{urlencode({'q': query, 'format': 'json'})}"
        )
        if capture.status != 200:
            raise FetchFailed(
                FetchFailure.BROKEN_RESPONSE, f"the search provider answered {capture.status}"
            )
        try:
            results = json.loads(capture.body)["results"]
            return [_found(result) for result in results[:k]]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise FetchFailed(
                FetchFailure.BROKEN_RESPONSE,
                "the search provider's answer is not a list of results",
            ) from error


def _found(result: dict[str, Any]) -> Found:
    score = float(result.get("score") or 0)
    return Found(
        url=str(result["url"]),
        title=str(result.get("title") or ""),
        snippet=str(result.get("content") or ""),
        score=score if math.isfinite(score) else 0.0,
    )
