"""SHA-256 of files and the canonical JSON text that digests are taken over."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


def canonical_json(value: object) -> bytes:
    """Return compact UTF-8 JSON with sorted keys.

    Raises:
        UnicodeEncodeError: a string holds a lone surrogate.
    """
    return _encode(value).encode("utf-8")


def sha256_bytes(content: bytes) -> str:
    """Return the hex SHA-256 of ``content``."""
    return hashlib.sha256(content).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the hex SHA-256 of a file, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
