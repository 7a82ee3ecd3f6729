"""Memory-mapped documents of a snapshot, by number, ID or URL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fumehood_snapshots.documents.document import Document, decode_document
from fumehood_snapshots.errors import SnapshotDamagedError
from fumehood_snapshots.format import layout
from fumehood_snapshots.format.arrays import map_array
from fumehood_snapshots.format.strings import StringTable, map_file, table_files


class DocumentStore:
    """The documents, numbered from 0 in the order of their IDs."""

    def __init__(self, root: Path) -> None:
        """Map the files without reading documents.

        Raises:
            SnapshotDamagedError: they are inconsistent.
        """
        self._records = map_file(root / layout.RECORDS)
        self._offsets = map_array(root / layout.RECORD_OFFSETS, "<i8")
        self._ids = StringTable(*(root / name for name in table_files(layout.IDS)))
        self._urls = StringTable(*(root / name for name in table_files(layout.URLS)))
        self._url_documents = map_array(root / layout.URL_DOCUMENTS, "<i4")
        if len(self._offsets) != len(self._ids) + 1 or int(self._offsets[-1]) != len(self._records):
            raise SnapshotDamagedError(
                "the documents, their offsets and their IDs are inconsistent"
            )
        if len(self._url_documents) != len(self._urls):
            raise SnapshotDamagedError("the URLs and their documents are inconsistent")

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[Document]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, number: int) -> Document:
        if not 0 <= number < len(self):
            raise IndexError(number)
        line = self._records[int(self._offsets[number]) : int(self._offsets[number + 1])]
        try:
            return decode_document(line)
        except ValueError as error:
            raise SnapshotDamagedError(
                f"document {number} cannot be read: verify the snapshot"
            ) from error

    def find(self, reference: str) -> int | None:
        """Return the number of the document with this ID, else with this URL, else None."""
        number = self._ids.find(reference)
        if number is not None:
            return number
        position = self._urls.find(reference)
        return None if position is None else int(self._url_documents[position])

    def id(self, number: int) -> str:
        """Return the id of a document without reading the document."""
        return self._ids[number]
