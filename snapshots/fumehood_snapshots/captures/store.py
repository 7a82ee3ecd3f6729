"""A WARC file with an index: append captures, read them by record ID."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from fumehood_snapshots.captures.capture import Capture
from fumehood_snapshots.captures.warc import (
    UnreadableRecordError,
    WarcError,
    encode_capture,
    read_captures,
)
from fumehood_snapshots.errors import SnapshotDamagedError
from fumehood_snapshots.format.hashing import canonical_json, parse_json

STORED_BYTES_MAX = 256 * 1024 * 1024


def append_capture(warc: Path, index: Path, capture: Capture) -> None:
    """Append a capture to a WARC file and its offset to the index."""
    record = encode_capture(capture)
    with warc.open("ab") as stream:
        offset = stream.tell()
        stream.write(record)
    with index.open("ab") as stream:
        stream.write(index_line(capture.record_id, capture.uri, offset, len(record)))


def index_line(record_id: str, uri: str, offset: int, size: int) -> bytes:
    """Return one line of an index."""
    return (
        canonical_json({"bytes": size, "offset": offset, "record": record_id, "uri": uri}) + b"\n"
    )


def read_index(index: Path) -> list[dict[str, Any]]:
    """Return the lines of an index; ignore an incomplete last line of a killed writer.

    Raises:
        SnapshotDamagedError: another line cannot be read.
    """
    lines = index.read_bytes().splitlines(keepends=True) if index.exists() else []
    if lines and not lines[-1].endswith(b"\n"):
        lines.pop()
    try:
        return [parse_json(line) for line in lines]
    except ValueError as error:
        raise SnapshotDamagedError(f"{index.name} cannot be read: {error}") from error


class CaptureStore:
    """Captures by record ID."""

    def __init__(self, warc: Path, index: Path) -> None:
        """Read the index.

        Raises:
            SnapshotDamagedError: it cannot be read.
        """
        self._warc = warc
        self._places = {
            line["record"]: (line["offset"], line["bytes"]) for line in read_index(index)
        }

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, record_id: str) -> bool:
        return record_id in self._places

    def read(self, record_id: str) -> Capture:
        """Return a capture.

        Raises:
            KeyError: there is no capture with that ID.
            SnapshotDamagedError: its offset holds another capture, or none.
        """
        offset, size = self._places[record_id]
        with self._warc.open("rb") as stream:
            stream.seek(offset)
            record = stream.read(min(size, STORED_BYTES_MAX))
        try:
            capture = next(read_captures(io.BytesIO(record), STORED_BYTES_MAX), None)
        except WarcError as error:
            raise SnapshotDamagedError(
                f"the capture {record_id} cannot be read: {error}"
            ) from error
        if capture is None or isinstance(capture, UnreadableRecordError):
            raise SnapshotDamagedError(
                f"the capture {record_id} cannot be read: verify the snapshot"
            )
        return capture
