"""One raw page, as served or as stored on disk."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from uuid import UUID, uuid5

from fumehood_snapshots.format.hashing import canonical_json, sha256_bytes

# The namespace of record ids: a fixed UUID of this format, so that equal captures get equal ids.
_NAMESPACE = UUID("6f1d8a4e-5c0b-5e0e-9d3a-2b7f0c9e4a11")

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """A raw page and its origin."""

    uri: str
    fetched_at: str
    """RFC 3339 in UTC; empty if unknown."""
    body: bytes
    """Without transfer and content encodings."""
    content_type: str
    status: int | None = None
    """HTTP status; None for a file."""
    headers: Headers = ()
    """HTTP headers."""

    @property
    def sha256(self) -> str:
        """Hex SHA-256 of the body."""
        return sha256_bytes(self.body)

    @property
    def record_id(self) -> str:
        """The WARC-Record-ID, derived from all fields, so equal captures have equal IDs."""
        origin = (self.uri, self.fetched_at, self.sha256)
        named = [*origin, self.content_type, self.status, self.headers]
        return f"<urn:uuid:{uuid5(_NAMESPACE, hashlib.sha256(canonical_json(named)).hexdigest())}>"
