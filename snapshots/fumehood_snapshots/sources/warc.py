"""A WARC file: every successful response with text becomes a document."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fumehood_snapshots.captures.warc import UnreadableRecordError, WarcError, read_captures
from fumehood_snapshots.documents.urls import canonical_url
from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.extraction.pages import UnreadablePageError
from fumehood_snapshots.format.hashing import sha256_file
from fumehood_snapshots.format.manifest import InputEntry
from fumehood_snapshots.sources.pages import PAGE_BYTES_MAX, PageItem
from fumehood_snapshots.sources.source import Item, Reading

ID_HEX_DIGITS = 12


@dataclass(frozen=True, slots=True)
class LostRecord:
    """An unreadable record, for the list of broken pages."""

    where: str
    reason: str
    size_bytes: int = 0

    def read(self, extractor: str) -> Reading:
        """Raise the reason.

        Raises:
            UnreadablePageError: always.
        """
        raise UnreadablePageError(self.reason)


def page_id(url: str) -> str:
    """Return the ID of a page that has only a URL: short, and equal in every snapshot."""
    return hashlib.sha256(canonical_url(url).encode("utf-8", "replace")).hexdigest()[:ID_HEX_DIGITS]


class WarcFile:
    """One WARC file, compressed or not."""

    def __init__(self, path: Path) -> None:
        """Store the path without reading the file.

        Raises:
            SnapshotInputError: the file does not exist.
        """
        if not path.is_file():
            raise SnapshotInputError(f"{path}: no such file")
        self._path = path

    def entry(self) -> InputEntry:
        """Return the manifest entry."""
        size = self._path.stat().st_size
        return InputEntry(
            kind="warc", name=self._path.name, bytes=size, sha256=sha256_file(self._path)
        )

    def items(self) -> Iterator[Item]:
        """Yield the responses and resources in order.

        Raises:
            SnapshotInputError: the file is not a WARC file, is truncated, or exceeds the expansion
                ratio.
        """
        with self._path.open("rb") as stream:
            try:
                for number, capture in enumerate(read_captures(stream, PAGE_BYTES_MAX), start=1):
                    where = f"{self._path.name}:{number}"
                    if isinstance(capture, UnreadableRecordError):
                        yield LostRecord(f"{where} {capture.uri}", str(capture))
                    else:
                        yield PageItem(
                            where=f"{where} {capture.uri}",
                            id=page_id(capture.uri),
                            url=capture.uri,
                            capture=capture,
                        )
            except WarcError as error:
                raise SnapshotInputError(f"{self._path}: {error}") from error
