"""Paths of the files of a snapshot, and safe resolution of listed paths.

Does not depend on the content of the files.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from fumehood_snapshots.errors import SnapshotDamagedError, SnapshotInputError

MANIFEST = "manifest.json"

RECORDS = "documents/records.jsonl"
RECORD_OFFSETS = "documents/offsets.npy"
IDS = "documents/ids"
URLS = "documents/urls"
URL_DOCUMENTS = "documents/url_documents.npy"
BROKEN = "documents/broken.jsonl"

TERMS = "index/terms"
POSTING_OFFSETS = "index/offsets.npy"
POSTING_DOCUMENTS = "index/documents.npy"
POSTING_WEIGHTS = "index/weights.npy"

CAPTURES = "captures/pages.warc"
CAPTURE_INDEX = "captures/pages.jsonl"

RECORDED = "recorded"


def field_values(number: int) -> str:
    """Return the stem of the string table that holds the values of field ``number``.

    Files are numbered, because field names come from documents and are untrusted.
    """
    return f"fields/{number:03d}"


def field_codes(number: int) -> str:
    """Return the array that holds each document's value of field ``number``."""
    return f"fields/{number:03d}.codes.npy"


def listed_path(root: Path, relative: str) -> Path:
    """Return the regular file inside ``root`` to which a manifest's path refers.

    Raises:
        SnapshotDamagedError: the path is absolute, leaves the folder (also through a symbolic
            link), or is not a file.
    """
    pure = PurePosixPath(relative)
    inside = not pure.is_absolute() and ".." not in pure.parts and bool(pure.parts)
    if not inside or "\\" in relative or "\0" in relative:
        raise SnapshotDamagedError(
            f"the manifest lists {relative!r}, which lies outside the snapshot"
        )
    path = root / pure
    if not path.resolve().is_relative_to(root.resolve()):
        raise SnapshotDamagedError(f"{relative!r} is a link that leaves the snapshot")
    if not path.is_file():
        raise SnapshotDamagedError(
            f"{relative!r} is listed in the manifest but missing from the snapshot"
        )
    return path


def snapshot_root(path: Path) -> Path:
    """Return ``path`` if it is a snapshot.

    Raises:
        SnapshotInputError: it contains no manifest.
    """
    if not (path / MANIFEST).is_file():
        raise SnapshotInputError(f"{path} is not a snapshot: it contains no {MANIFEST}")
    return path
