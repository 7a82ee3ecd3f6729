"""A document: the unit that is indexed, searched, opened and cited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from urllib.parse import urlsplit

from fumehood_snapshots.format.hashing import canonical_json, parse_json

HOST_FIELD = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document of a snapshot."""

    id: str
    """Used in citations and judgements; unique in a snapshot."""
    text: str
    url: str = ""
    title: str = ""
    fetched_at: str = ""
    """RFC 3339 in UTC; empty if unknown."""
    raw_sha256: str
    """Hex SHA-256 of the source bytes."""
    capture: str = ""
    """The WARC-Record-ID of the source bytes; empty if only the text was given."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Names and values for filters."""


NAMES = tuple(field.name for field in fields(Document))


def encode_document(document: Document) -> bytes:
    """Return the document as one line of UTF-8 JSON.

    Raises:
        UnencodableError: a text holds a lone surrogate.
    """
    return canonical_json({name: getattr(document, name) for name in NAMES}) + b"\n"


def decode_document(line: bytes) -> Document:
    """Return the document that :func:`encode_document` wrote.

    Raises:
        ValueError: the line is not a document.
    """
    try:
        return Document(**parse_json(line))
    except TypeError as error:
        raise ValueError(str(error)) from error


def filterable_fields(document: Document) -> dict[str, str]:
    """Return the document's fields and, if it has a URL, its host."""
    host = url_host(document.url)
    return {**({HOST_FIELD: host} if host else {}), **document.fields}


def url_host(url: str) -> str:
    """Return the lower-case host of ``url``; empty if it has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
