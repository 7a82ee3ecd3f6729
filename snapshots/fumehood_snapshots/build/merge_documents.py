"""Merges the documents of chunks: records, tables of IDs and URLs, fields, captures."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fumehood_snapshots.build.chunk import BROKEN, CAPTURE_INDEX, CAPTURES, Chunk
from fumehood_snapshots.build.options import Progress
from fumehood_snapshots.build.order import Order
from fumehood_snapshots.captures.store import index_line
from fumehood_snapshots.format import layout
from fumehood_snapshots.format.arrays import save_array
from fumehood_snapshots.format.hashing import parse_json
from fumehood_snapshots.format.strings import write_strings

REPORTED_EVERY = 2048


def merge_records(root: Path, chunks: Sequence[Chunk], order: Order, progress: Progress) -> None:
    """Write the documents in the order of their IDs, and their lookup tables."""
    offsets = np.zeros(len(order.ids) + 1, dtype=np.int64)
    with (root / layout.RECORDS).open("wb") as stream:
        places = zip(order.chunks.tolist(), order.positions.tolist(), strict=True)
        for number, (chunk_number, position) in enumerate(places):
            chunk = chunks[chunk_number]
            begin, end = chunk.record_offsets[position], chunk.record_offsets[position + 1]
            offsets[number + 1] = offsets[number] + stream.write(chunk.records[begin:end])
            if number % REPORTED_EVERY == 0:
                progress("merging documents", number, len(order.ids))
    save_array(root / layout.RECORD_OFFSETS, offsets, "<i8")
    write_strings(root, layout.IDS, order.ids)
    urls = sorted(order.urls)
    write_strings(root, layout.URLS, urls)
    save_array(
        root / layout.URL_DOCUMENTS,
        np.array([order.urls[url] for url in urls], dtype=np.int32),
        "<i4",
    )


def merge_fields(root: Path, order: Order) -> None:
    """Write one column and one table of values per field."""
    for number, name in enumerate(sorted(order.fields)):
        write_strings(root, layout.field_values(number), order.field_values[name])
        save_array(root / layout.field_codes(number), order.fields[name], "<i4")


def merge_broken(root: Path, chunks: Sequence[Chunk], order: Order) -> int:
    """Write broken pages in the order of the input, then duplicates; return their number."""
    lists = [(chunk.folder / BROKEN).read_bytes() for chunk in chunks]
    lines = [line for text in lists for line in text.splitlines(keepends=True)]
    (root / layout.BROKEN).write_bytes(b"".join([*lines, *order.duplicates]))
    return len(lines) + len(order.duplicates)


def merge_captures(root: Path, chunks: Sequence[Chunk]) -> int:
    """Concatenate the captures in input order and return their number; write no file for none."""
    if not any((chunk.folder / CAPTURE_INDEX).stat().st_size for chunk in chunks):
        return 0
    warc, index = root / layout.CAPTURES, root / layout.CAPTURE_INDEX
    warc.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with warc.open("wb") as records, index.open("wb") as lines:
        for chunk in chunks:
            base = records.tell()
            with (chunk.folder / CAPTURES).open("rb") as captures:
                shutil.copyfileobj(captures, records)
            for line in (chunk.folder / CAPTURE_INDEX).read_bytes().splitlines():
                entry = parse_json(line)
                lines.write(
                    index_line(
                        entry["record"], entry["uri"], base + entry["offset"], entry["bytes"]
                    )
                )
                count += 1
    return count
