"""A sealed snapshot, open for reading and searching; nothing is loaded that is not asked for."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fumehood_snapshots.analysis.analyzer import Analyzer
from fumehood_snapshots.analysis.spec import check_stemmer
from fumehood_snapshots.captures.store import CaptureStore
from fumehood_snapshots.documents.document import Document
from fumehood_snapshots.documents.store import DocumentStore
from fumehood_snapshots.documents.urls import canonical_url
from fumehood_snapshots.format import layout
from fumehood_snapshots.format.manifest import Manifest, read_manifest
from fumehood_snapshots.format.verification import check_contents, check_sizes
from fumehood_snapshots.index.filters import FieldTable, Filter
from fumehood_snapshots.index.scorer import Scorer
from fumehood_snapshots.index.selection import best
from fumehood_snapshots.snippets import QueryWords, best_snippet


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of a search."""

    id: str
    score: float
    url: str
    title: str
    snippet: str
    snippet_start: int
    """Where the snippet lies in the document, in characters from its beginning."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A document's place in a ranking, without the document."""

    number: int
    id: str
    score: float


class Snapshot:
    """An open snapshot. Every method may be called from several threads at once."""

    def __init__(self, root: Path, manifest: Manifest, digest: str) -> None:
        """Map the files; use :func:`open_snapshot`, which checks them first."""
        self.root = root
        self.manifest = manifest
        self.digest = digest
        """SHA-256 of the manifest, which names the hash of every other file."""
        self.documents = DocumentStore(root)
        self.analyzer = Analyzer(manifest.analysis)
        self._fields = FieldTable(root, manifest.fields, len(self.documents))

    @cached_property
    def scorer(self) -> Scorer:
        """The mapped index."""
        return Scorer(self.root, len(self.documents))

    def rank(self, query: str, k: int, wanted: Filter | None = None) -> list[Ranked]:
        """Return the ``k`` best documents by (−score, id).

        Args:
            query: any text; cut like the documents.
            k: at least 1.
            wanted: only documents that fit this filter.

        Returns:
            Fewer than ``k`` if fewer hold a term of the query.

        Raises:
            Refusal: the filter names an unknown field.
        """
        scores = self.scorer.scores(self.analyzer.terms(query))
        if wanted:
            scores = scores * self._fields.matching(wanted)
        numbers = best(scores, k).tolist()
        return [
            Ranked(number, self.documents.id(number), float(scores[number])) for number in numbers
        ]

    def search(
        self,
        query: str,
        k: int | None = None,
        wanted: Filter | None = None,
        snippet_chars: int | None = None,
    ) -> list[Hit]:
        """Return the ``k`` best documents with a snippet each.

        Args:
            query: any text.
            k: how many; None means what the manifest says.
            wanted: only documents that fit this filter.
            snippet_chars: longest snippet; None means what the manifest says.

        Raises:
            Refusal: the filter names an unknown field.
        """
        limit = snippet_chars or self.manifest.search.snippet_chars
        words = QueryWords(self.analyzer.terms(query), self.analyzer)
        hits = []
        for ranked in self.rank(query, k or self.manifest.search.k, wanted):
            document = self.documents[ranked.number]
            snippet = best_snippet(document.text, words, limit)
            hits.append(
                Hit(
                    document.id,
                    ranked.score,
                    document.url,
                    document.title,
                    snippet.text,
                    snippet.start,
                )
            )
        return hits

    def search_many(
        self, queries: Sequence[str], k: int | None = None, threads: int = 1
    ) -> list[list[Hit]]:
        """Return what :meth:`search` returns for each query, found by several threads."""
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda query: self.search(query, k), queries))

    def find(self, reference: str) -> Document | None:
        """Return the document with this id or URL, however the URL is written; None if there is none."""
        number = self.documents.find(reference)
        if number is None:
            number = self.documents.find(canonical_url(reference))
        return None if number is None else self.documents[number]

    def captures(self) -> CaptureStore:
        """Return the raw pages by record id; empty where the snapshot was built from text."""
        return CaptureStore(self.root / layout.CAPTURES, self.root / layout.CAPTURE_INDEX)


def open_snapshot(path: Path, *, verify: bool = False) -> Snapshot:
    """Open a snapshot.

    Args:
        path: its folder.
        verify: read every byte and compare hashes; otherwise only presence and sizes are checked, which
            takes milliseconds.

    Raises:
        SnapshotInputError: the folder is no snapshot.
        SnapshotVersionError: it was made by a later release, or with a stemmer that works otherwise.
        SnapshotDamagedError: its files are not what its manifest says.
    """
    manifest, digest = read_manifest(path)
    (check_contents if verify else check_sizes)(path, manifest)
    check_stemmer(manifest.analysis.stemmer, manifest.analysis.stems)
    return Snapshot(path, manifest, digest)
