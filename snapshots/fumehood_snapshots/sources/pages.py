"""A raw page as an item, and the rules for every document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fumehood_snapshots.captures.capture import Capture
from fumehood_snapshots.documents.document import Document
from fumehood_snapshots.extraction.pages import UnreadablePageError, extract_page
from fumehood_snapshots.sources.source import Reading

PAGE_BYTES_MAX = 32 * 1024 * 1024
ID_CHARS_MAX = 512
FIELDS_MAX = 64

_FIT_FOR_ID = re.compile(r"[^\s\x00-\x1f\x7f]+")
_UTC_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageItem:
    """A raw page."""

    where: str
    id: str
    capture: Capture
    url: str = ""
    title: str = ""
    """Overrides the title of the page."""
    fields: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Length of the body."""
        return len(self.capture.body)

    def read(self, extractor: str) -> Reading:
        """Extract the page.

        Raises:
            UnreadablePageError: it is too large, an error page, not text, or invalid.
        """
        capture = self.capture
        if len(capture.body) > PAGE_BYTES_MAX:
            raise UnreadablePageError(f"larger than {PAGE_BYTES_MAX} bytes")
        if capture.status is not None and not 200 <= capture.status < 300:
            raise UnreadablePageError(f"the server answered {capture.status}")
        extracted = extract_page(capture.body, capture.content_type, extractor)
        document = Document(
            id=self.id,
            url=self.url,
            title=self.title or extracted.title,
            fetched_at=capture.fetched_at,
            raw_sha256=capture.sha256,
            capture=capture.record_id,
            text=extracted.text,
            fields=self.fields,
        )
        return Reading(checked(document), capture, self.aliases)


def checked(document: Document) -> Document:
    """Return ``document`` if it is valid in a snapshot.

    Raises:
        UnreadablePageError: its ID is invalid, or it has too many fields.
    """
    if not _FIT_FOR_ID.fullmatch(document.id) or len(document.id) > ID_CHARS_MAX:
        raise UnreadablePageError(
            f"its ID {document.id[:40]!r} must be 1 to {ID_CHARS_MAX} characters without blanks"
        )
    if not document.text.strip():
        raise UnreadablePageError("no text in it")
    if len(document.fields) > FIELDS_MAX:
        raise UnreadablePageError(f"more than {FIELDS_MAX} fields")
    if document.fetched_at and not _UTC_TIME.fullmatch(document.fetched_at):
        raise UnreadablePageError(
            f"fetched_at {document.fetched_at[:40]!r} must have the form 2026-01-31T12:00:00Z"
        )
    return document
