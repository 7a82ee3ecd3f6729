"""One chunk of a build: items that are read, counted and written to one folder.

A chunk's folder appears complete or not at all, so a killed build continues with its finished
chunks.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fumehood_snapshots.analysis.spec import AnalysisSpec
from fumehood_snapshots.captures.store import index_line
from fumehood_snapshots.captures.warc import encode_capture
from fumehood_snapshots.documents.document import Document, encode_document, filterable_fields
from fumehood_snapshots.extraction.pages import UnreadablePageError
from fumehood_snapshots.format.arrays import map_array, save_array
from fumehood_snapshots.format.hashing import UnencodableError, canonical_json
from fumehood_snapshots.format.strings import StringTable, map_file, table_files, write_strings
from fumehood_snapshots.index.counting import CountedChunk, TermCounter
from fumehood_snapshots.sources.source import Item, Reading

RECORDS = "records.jsonl"
HEADS = "heads.jsonl"
BROKEN = "broken.jsonl"
CAPTURES = "captures.warc"
CAPTURE_INDEX = "captures.jsonl"
TERMS = "terms"
ARRAYS = {
    "offsets": "<i8",
    "documents": "<i4",
    "frequencies": "<i4",
    "lengths": "<i4",
    "record_offsets": "<i8",
}


@dataclass(frozen=True, slots=True)
class ChunkJob:
    """The input of a worker for one chunk."""

    folder: Path
    items: Sequence[Item]
    extractor: str
    analysis: AnalysisSpec


@cache
def _own_counter(spec_json: str) -> TermCounter:
    return TermCounter(AnalysisSpec.model_validate_json(spec_json))


def make_chunk_in_worker(job: ChunkJob) -> Path:
    """Make a chunk in a worker process; its single thread reuses the counter."""
    return make_chunk(job, _own_counter(job.analysis.model_dump_json()))


def make_chunk(job: ChunkJob, counter: TermCounter) -> Path:
    """Read, count and write the items of one chunk; return its folder."""
    unfinished = job.folder.with_name(job.folder.name + f".part-{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    with _Writer(unfinished) as writer:
        counted = counter.count(writer.texts(job.items, job.extractor))
    _save_counts(unfinished, counted, writer.record_offsets)
    unfinished.rename(job.folder)
    return job.folder


def _save_counts(folder: Path, counted: CountedChunk, record_offsets: list[int]) -> None:
    write_strings(folder, TERMS, counted.terms)
    arrays: dict[str, NDArray[Any]] = {
        "offsets": counted.offsets,
        "documents": counted.documents,
        "frequencies": counted.frequencies,
        "lengths": counted.lengths,
        "record_offsets": np.array(record_offsets, dtype=np.int64),
    }
    for name, dtype in ARRAYS.items():
        save_array(folder / f"{name}.npy", arrays[name], dtype)


class _Writer:
    """Writes records line by line and passes the texts on to be counted."""

    def __init__(self, folder: Path) -> None:
        names = (RECORDS, HEADS, BROKEN, CAPTURES, CAPTURE_INDEX)
        self._streams = [(folder / name).open("wb") for name in names]
        self._records, self._heads, self._broken, self._captures, self._capture_index = (
            self._streams
        )
        self.record_offsets = [0]

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in self._streams:
            stream.close()

    def texts(self, items: Sequence[Item], extractor: str) -> Iterator[str]:
        """Yield the indexed text of each item that yields a document."""
        for item in items:
            try:
                reading = item.read(extractor)
                line = encode_document(reading.document)
            except UnreadablePageError as error:
                self._broken.write(broken_line(item.where, str(error)))
                continue
            except UnencodableError:
                self._broken.write(
                    broken_line(item.where, "its ID, URL or fields are not valid Unicode")
                )
                continue
            if reading.capture is not None:
                record = encode_capture(reading.capture)
                offset = self._captures.tell()
                self._captures.write(record)
                uri = reading.capture.uri
                self._capture_index.write(
                    index_line(reading.document.capture, uri, offset, len(record))
                )
            self._write_document(reading, line, item.where)
            yield indexed_text(reading.document)

    def _write_document(self, reading: Reading, line: bytes, where: str) -> None:
        document = reading.document
        self._records.write(line)
        self.record_offsets.append(self.record_offsets[-1] + len(line))
        urls = [document.url, *reading.aliases]
        self._heads.write(
            canonical_json([document.id, urls, filterable_fields(document), where]) + b"\n"
        )


def indexed_text(document: Document) -> str:
    """Return the indexed text of a document: title and text."""
    return f"{document.title}\n{document.text}"


def broken_line(where: str, reason: str) -> bytes:
    """Return one line of the list of broken pages."""
    valid = [text.encode("utf-8", "replace").decode("utf-8") for text in (where, reason)]
    return canonical_json({"reason": valid[1], "where": valid[0]}) + b"\n"


class Chunk:
    """A finished, memory-mapped chunk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        arrays = {name: map_array(folder / f"{name}.npy", dtype) for name, dtype in ARRAYS.items()}
        self.offsets = arrays["offsets"]
        self.documents = arrays["documents"]
        self.frequencies = arrays["frequencies"]
        self.lengths = arrays["lengths"]
        self.record_offsets = arrays["record_offsets"]
        self.records = map_file(folder / RECORDS)

    def terms(self) -> StringTable:
        """Map the terms."""
        return StringTable(*(self.folder / name for name in table_files(TERMS)))
