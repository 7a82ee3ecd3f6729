"""A source of documents and the items it yields.

Reading an item (parsing, extraction) is expensive and happens in worker processes. A source only
splits its input into items, which are small, can be sent to another process, and state their
origin.
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
    """The document of one item."""

    document: Document
    capture: Capture | None = None
    """The raw page, if it differs from the text."""
    aliases: tuple[str, ...] = ()
    """Other URLs of the document."""


class Item(Protocol):
    """One potential document."""

    @property
    def where(self) -> str:
        """Its location in the source, for the list of broken pages."""
        ...

    @property
    def size_bytes(self) -> int:
        """Its approximate size in memory, in bytes."""
        ...

    def read(self, extractor: str) -> Reading:
        """Return its document.

        Raises:
            UnreadablePageError: it has no document.
        """
        ...


class Source(Protocol):
    """One input of a build."""

    def entry(self) -> InputEntry:
        """Return the manifest entry of this input, with its hash."""
        ...

    def items(self) -> Iterator[Item]:
        """Yield the items in a fixed order."""
        ...
