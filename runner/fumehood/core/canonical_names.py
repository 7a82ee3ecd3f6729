"""Names that may be anything, made safe for files."""

from __future__ import annotations

import re
from hashlib import sha256

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def file_name(name: str) -> str:
    """Return ``name`` if it can be a file's name anywhere, else a readable stand-in that is its own.

    The stand-in ends in a digest of the name, so two names never share a file.
    """
    if _SAFE.fullmatch(name) and not name.endswith("."):
        return name
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:60] or "x"
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{readable}~{digest}"
