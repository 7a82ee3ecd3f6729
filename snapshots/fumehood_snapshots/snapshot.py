"""Opens snapshots for reading and searching; loads data on demand."""

from __future__ import annotations

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
    """Offset of the snippet in the document, in characters."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A document's rank, without its text."""

    number: int
    id: str
    score: float


class Snapshot:
    """An open snapshot. Thread-safe."""

    def __init__(self, root: Path, manifest: Manifest, digest: str) -> None:
        """Map the files; use :func:`open_snapshot`, which checks them first."""
        self.root = root
        self.manifest = manifest
        self.digest = digest
        """SHA-256 of the manifest, which lists the hash of every other file."""
        self.documents = DocumentStore(root)
        self.analyzer = Analyzer(manifest.analysis)
        self._fields = FieldTable(root, manifest.fields, len(self.documents))

    @cached_property
    def scorer(self) -> Scorer:
        """The memory-mapped index."""
        return Scorer(self.root, len(self.documents))

    def rank(self, query: str, k: int, wanted: Filter | None = None) -> list[Ranked]:
        """Return the ``k`` best documents by (−score, id).

        Args:
            query: any text; analysed like the documents.
            k: at least 1.
            wanted: filter on field values.

        Returns:
            Fewer than ``k`` if fewer documents contain a query term.

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
            k: number of results; None selects the default of the manifest.
            wanted: filter on field values.
            snippet_chars: maximum length of a snippet; None selects the default of the manifest.

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

    def find(self, reference: str) -> Document | None:
        """Return the document with this ID or URL (any spelling), or None."""
        number = self.documents.find(reference)
        if number is None:
            number = self.documents.find(canonical_url(reference))
        return None if number is None else self.documents[number]

    def captures(self) -> CaptureStore:
        """Return the raw pages by record ID; empty if the snapshot was built from text."""
        return CaptureStore(self.root / layout.CAPTURES, self.root / layout.CAPTURE_INDEX)


def open_snapshot(path: Path, *, verify: bool = False) -> Snapshot:
    """Open a snapshot, and compare sizes, or with ``verify`` the hash of every file.

    Raises:
        SnapshotInputError: the folder is not a snapshot.
        SnapshotVersionError: it was built by a later release, or with a different stemmer.
        SnapshotDamagedError: its files differ from its manifest.
    """
    manifest, digest = read_manifest(path)
    (check_contents if verify else check_sizes)(path, manifest)
    check_stemmer(manifest.analysis.stemmer, manifest.analysis.stems)
    return Snapshot(path, manifest, digest)
