"""The manifest: what a snapshot is, by value, and the hash of every file in it.

The digest of a snapshot is the SHA-256 of its manifest, so one short text names every byte. Nothing in it
depends on when or where the build ran.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fumehood_snapshots.analysis.spec import AnalysisSpec
from fumehood_snapshots.errors import SnapshotDamagedError, SnapshotVersionError
from fumehood_snapshots.format.hashing import sha256_bytes
from fumehood_snapshots.format.layout import MANIFEST, snapshot_root

SCHEMA_VERSION = 1
MANIFEST_BYTES_MAX = 64 * 1024 * 1024


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FileEntry(_Record):
    """One file of the snapshot."""

    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Counts(_Record):
    """How much there is of what."""

    documents: int = Field(ge=0)
    terms: int = Field(ge=0)
    postings: int = Field(ge=0)
    """Pairs of a term and a document that holds it."""
    tokens: int = Field(ge=0)
    """Occurrences of terms in all documents."""
    captures: int = Field(ge=0)
    broken: int = Field(ge=0)
    """Inputs that gave no document; listed in ``documents/broken.jsonl``."""


class RankingSpec(_Record):
    """BM25 and its parameters."""

    method: Literal["lucene", "okapi"] = "lucene"
    """``okapi`` is BM25Okapi as the Python library of that name computes it."""
    k1: float = Field(default=1.2, ge=0, le=100)
    b: float = Field(default=0.75, ge=0, le=1)
    epsilon: float = Field(default=0.25, ge=0, le=1)
    """Of ``okapi``: a negative IDF becomes this share of the average IDF."""
    shard_documents: int | None = Field(default=None, ge=1)
    """Count term statistics over runs of so many documents instead of globally; None means globally."""


class SearchDefaults(_Record):
    """What a search uses when the caller does not say."""

    k: int = Field(default=10, ge=1, le=1000)
    snippet_chars: int = Field(default=1200, ge=1, le=1_000_000)


class InputEntry(_Record):
    """One thing the snapshot was built from."""

    kind: str
    name: str
    """The last part of its path; the rest is nobody's business."""
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Provenance(_Record):
    """Where the documents came from and what cut them."""

    inputs: tuple[InputEntry, ...]
    extractor: str
    software: dict[str, str]
    """Releases that decide bytes, such as the stemmer's; never the time, the host or the user."""
    note: str = ""


class Manifest(_Record):
    """The whole of ``manifest.json``."""

    format: Literal["fumehood-snapshot"] = "fumehood-snapshot"
    schema_version: Literal[1] = 1
    name: str
    counts: Counts
    analysis: AnalysisSpec
    ranking: RankingSpec
    search: SearchDefaults
    fields: tuple[str, ...]
    """Names by which a search can filter; the position is the number in the file names."""
    provenance: Provenance
    licences: tuple[str, ...]
    """Notes on who may do what with the documents."""
    files: dict[str, FileEntry]
    """Relative path → size and hash of every file but the manifest."""


def manifest_bytes(manifest: Manifest) -> bytes:
    """Return the one text of ``manifest``: indented UTF-8 JSON with sorted keys."""
    text = json.dumps(
        manifest.model_dump(mode="json"), indent=2, sort_keys=True, ensure_ascii=False
    )
    return text.encode("utf-8") + b"\n"


def read_manifest(root: Path) -> tuple[Manifest, str]:
    """Return the manifest of the snapshot at ``root`` and the snapshot's digest.

    Raises:
        SnapshotInputError: the folder is no snapshot.
        SnapshotVersionError: a later release wrote it.
        SnapshotDamagedError: it cannot be understood.
    """
    path = snapshot_root(root) / MANIFEST
    if path.stat().st_size > MANIFEST_BYTES_MAX:
        raise SnapshotDamagedError(f"{MANIFEST} is larger than {MANIFEST_BYTES_MAX} bytes")
    content = path.read_bytes()
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise SnapshotDamagedError(f"{MANIFEST} is not JSON: {error}") from error
    _refuse_later_versions(value)
    try:
        return Manifest.model_validate_json(content), sha256_bytes(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise SnapshotDamagedError(f"{MANIFEST}: {where}: {first['msg']}") from error


def _refuse_later_versions(value: object) -> None:
    version = value.get("schema_version") if isinstance(value, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise SnapshotVersionError(
            f"this snapshot has schema version {version}, this release reads up to {SCHEMA_VERSION}; "
            "upgrade fumehood"
        )
