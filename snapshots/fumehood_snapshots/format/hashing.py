"""SHA-256 of files, and the canonical JSON over which digests are computed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import orjson


class UnencodableError(ValueError):
    """A value that has no JSON text in UTF-8."""


def canonical_json(value: object) -> bytes:
    """Return compact UTF-8 JSON with sorted keys.

    Raises:
        UnencodableError: a string contains a lone surrogate, or the value is not JSON.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        raise UnencodableError(str(error)) from error


def parse_json(text: bytes) -> Any:
    """Return the value of a JSON text in UTF-8.

    Raises:
        ValueError: it is not JSON, or nested too deeply.
    """
    return orjson.loads(text)


def sha256_bytes(content: bytes) -> str:
    """Return the hex SHA-256 of ``content``."""
    return hashlib.sha256(content).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the hex SHA-256 of a file, read in blocks."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
