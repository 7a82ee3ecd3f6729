"""A library over a sealed snapshot: what is not in it does not exist."""

from __future__ import annotations

from fumehood_snapshots.errors import Refusal, RefusalCode
from fumehood_snapshots.index.filters import Filter
from fumehood_snapshots.library.library import Page, SearchResult
from fumehood_snapshots.snapshot import Snapshot


class SealedLibrary:
    """Searches and opens documents of one snapshot; never the network."""

    def __init__(self, snapshot: Snapshot, snippet_chars: int | None = None) -> None:
        """Take note.

        Args:
            snapshot: open.
            snippet_chars: longest snippet; None means what the manifest says.
        """
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
        """Return the document with this id or URL.

        Raises:
            Refusal: the snapshot holds none.
        """
        document = self._snapshot.find(reference)
        if document is None:
            raise Refusal(RefusalCode.NOT_FOUND, "there is no page with this id or URL")
        return Page(document.id, document.url, document.title, document.text)
