"""A source of documents and the items it yields.

Reading an item (parsing, extracting) is the expensive part and happens in worker processes. So a source only
cuts its input into items, which are small, can be sent to another process, and say where they came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from fumehood_snapshots.captures.capture import Capture
from fumehood_snapshots.documents.document import Document
from fumehood_snapshots.format.manifest import InputEntry


@dataclass(frozen=True, slots=True)
class Reading:
    """What became of one item."""

    document: Document
    capture: Capture | None = None
    """The raw page, where there is more to keep than the text."""
    aliases: tuple[str, ...] = ()
    """Other URLs that led to it."""


class Item(Protocol):
    """One thing that may give a document."""

    @property
    def where(self) -> str:
        """Its place in the source, for the list of broken pages."""
        ...

    @property
    def size_bytes(self) -> int:
        """About how much memory it takes."""
        ...

    def read(self, extractor: str) -> Reading:
        """Return its document.

        Raises:
            UnreadablePageError: it gives none.
        """
        ...


class Source(Protocol):
    """One input of a build."""

    def entry(self) -> InputEntry:
        """Return what the manifest says of this input, its hash included."""
        ...

    def items(self) -> Iterator[Item]:
        """Yield the items, each time in the same order."""
        ...
