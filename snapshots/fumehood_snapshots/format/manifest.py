"""The manifest: the settings of a snapshot, by value, and the hash of each file.

The digest of a snapshot is the SHA-256 of its manifest, so it identifies every byte. Nothing in the
manifest depends on the time or the machine of the build.
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
    """Counts of the contents."""

    documents: int = Field(ge=0)
    terms: int = Field(ge=0)
    postings: int = Field(ge=0)
    """Pairs of a term and a document that contains it."""
    tokens: int = Field(ge=0)
    """Occurrences of terms in all documents."""
    captures: int = Field(ge=0)
    broken: int = Field(ge=0)
    """Inputs without a document; listed in ``documents/broken.jsonl``."""


class RankingSpec(_Record):
    """BM25 and its parameters."""

    method: Literal["lucene", "okapi"] = "lucene"
    """``okapi`` is BM25Okapi as ``rank_bm25`` computes it."""
    k1: float = Field(default=1.2, ge=0, le=100)
    b: float = Field(default=0.75, ge=0, le=1)
    epsilon: float = Field(default=0.25, ge=0, le=1)
    """For ``okapi``: replaces a negative IDF by this fraction of the average IDF."""
    shard_documents: int | None = Field(default=None, ge=1)
    """Documents per shard of term statistics; None means one global shard."""


class SearchDefaults(_Record):
    """Defaults of a search."""

    k: int = Field(default=10, ge=1, le=1000)
    snippet_chars: int = Field(default=1200, ge=1, le=1_000_000)


class InputEntry(_Record):
    """One input of the build."""

    kind: str
    name: str
    """The last component of its path; the rest is not stored."""
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Provenance(_Record):
    """Inputs and extraction settings."""

    inputs: tuple[InputEntry, ...]
    extractor: str
    software: dict[str, str]
    """Releases of libraries that determine bytes, such as the stemmer; never time, host or user."""
    note: str = ""


class Manifest(_Record):
    """The content of ``manifest.json``."""

    format: Literal["fumehood-snapshot"] = "fumehood-snapshot"
    schema_version: Literal[1] = 1
    name: str
    counts: Counts
    analysis: AnalysisSpec
    ranking: RankingSpec
    search: SearchDefaults
    fields: tuple[str, ...]
    """Fields by which a search can filter; the position is the number in file names."""
    provenance: Provenance
    licences: tuple[str, ...]
    """Notes on the licences of the documents."""
    files: dict[str, FileEntry]
    """Relative path → size and hash of every file except the manifest."""


def manifest_bytes(manifest: Manifest) -> bytes:
    """Return ``manifest`` as indented UTF-8 JSON with sorted keys."""
    text = json.dumps(
        manifest.model_dump(mode="json"), indent=2, sort_keys=True, ensure_ascii=False
    )
    return text.encode("utf-8") + b"\n"


def read_manifest(root: Path) -> tuple[Manifest, str]:
    """Return the manifest and the digest of the snapshot at ``root``.

    Raises:
        SnapshotInputError: the folder is not a snapshot.
        SnapshotVersionError: a later release wrote it.
        SnapshotDamagedError: it cannot be parsed.
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
            f"this snapshot has schema version {version}, "
            f"this release reads up to {SCHEMA_VERSION}; "
            "upgrade fumehood"
        )
