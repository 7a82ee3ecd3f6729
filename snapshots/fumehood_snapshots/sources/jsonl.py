"""JSON Lines: one document per line, as text or HTML, with configurable keys.

::

    {"id": "d1", "url": "https://…", "title": "…", "text": "…", "fetched_at": "…",
     "fields": {"lang": "en"}}

Other collections use other keys (``docid``, ``_id``, ``contents``); a mapping translates them. A
line with ``html`` instead of ``text`` is extracted, and its HTML is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from fumehood_snapshots.captures.capture import Capture
from fumehood_snapshots.documents.document import Document
from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.extraction.pages import UnreadablePageError, clean
from fumehood_snapshots.format.hashing import parse_json, sha256_bytes, sha256_file
from fumehood_snapshots.format.manifest import InputEntry
from fumehood_snapshots.sources.pages import PAGE_BYTES_MAX, PageItem, checked
from fumehood_snapshots.sources.source import Item, Reading

KEYS = ("id", "url", "title", "text", "html", "fetched_at", "fields")


@dataclass(frozen=True, slots=True)
class JsonLine:
    """One line, not yet parsed."""

    where: str
    line: bytes
    keys: Mapping[str, str]

    @property
    def size_bytes(self) -> int:
        """Length of the line."""
        return len(self.line)

    def read(self, extractor: str) -> Reading:
        """Parse the line.

        Raises:
            UnreadablePageError: it is not a JSON object with an ID and text or HTML.
        """
        record = self._record()
        fields = record.get(self.keys["fields"]) or {}
        if not isinstance(fields, dict) or not all(
            isinstance(value, str) for value in fields.values()
        ):
            raise UnreadablePageError(f"{self.keys['fields']!r} must map names to strings")
        named = {
            key: self._string(record, key)
            for key in ("id", "url", "title", "fetched_at", "text", "html")
        }
        if named["html"]:
            return self._page(named, fields).read(extractor)
        text = clean(named["text"])
        document = Document(
            id=named["id"],
            url=named["url"],
            title=clean(named["title"]),
            fetched_at=named["fetched_at"],
            raw_sha256=sha256_bytes(text.encode("utf-8")),
            text=text,
            fields=fields,
        )
        return Reading(checked(document))

    def _record(self) -> dict[str, Any]:
        if len(self.line) > PAGE_BYTES_MAX:
            raise UnreadablePageError(f"longer than {PAGE_BYTES_MAX} bytes")
        try:
            record = _parsed(self.line)
        except (ValueError, RecursionError) as error:
            raise UnreadablePageError(f"not JSON: {error}") from error
        if not isinstance(record, dict):
            raise UnreadablePageError("not a JSON object")
        return record

    def _string(self, record: dict[str, Any], key: str) -> str:
        value = record.get(self.keys[key])
        if value is None:
            return ""
        # Numbers are common as IDs; other types are ambiguous.
        if isinstance(value, int) and not isinstance(value, bool) and key == "id":
            return str(value)
        if not isinstance(value, str):
            raise UnreadablePageError(f"{self.keys[key]!r} must be a string")
        return value

    def _page(self, named: Mapping[str, str], fields: Mapping[str, str]) -> PageItem:
        capture = Capture(
            uri=named["url"] or f"urn:document:{named['id']}",
            fetched_at=named["fetched_at"],
            body=clean(named["html"]).encode("utf-8"),
            content_type="text/html; charset=utf-8",
        )
        return PageItem(
            where=self.where,
            id=named["id"],
            url=named["url"],
            title=named["title"],
            capture=capture,
            fields=fields,
        )


class JsonLines:
    """A JSON Lines file."""

    def __init__(self, path: Path, names: Mapping[str, str] | None = None) -> None:
        """Store the path, and the keys that replace some of :data:`KEYS`, such as ``docid``.

        Raises:
            SnapshotInputError: the file does not exist, or ``names`` has an unknown key.
        """
        unknown = sorted(set(names or {}) - set(KEYS))
        if unknown:
            raise SnapshotInputError(
                f"{unknown[0]!r} is not a key of a document; the keys are: {', '.join(KEYS)}"
            )
        if not path.is_file():
            raise SnapshotInputError(f"{path}: no such file")
        self._path = path
        self._keys = {key: (names or {}).get(key, key) for key in KEYS}

    def entry(self) -> InputEntry:
        """Return the manifest entry."""
        size = self._path.stat().st_size
        return InputEntry(
            kind="jsonl", name=self._path.name, bytes=size, sha256=sha256_file(self._path)
        )

    def items(self) -> Iterator[Item]:
        """Yield the lines that are not blank."""
        with self._path.open("rb") as stream:
            for number, line in enumerate(_bounded_lines(stream), start=1):
                if not line.isspace():
                    yield JsonLine(f"{self._path.name}:{number}", line, self._keys)


def _parsed(line: bytes) -> Any:
    try:
        return parse_json(line)
    except ValueError:
        # Python's parser is slower but accepts lone surrogates, which real collections contain and
        # which are then replaced.
        return json.loads(line)


def _bounded_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield lines; truncate a line that exceeds the limit, so that it is refused."""
    while line := stream.readline(PAGE_BYTES_MAX + 1):
        yield line
        while len(line) > PAGE_BYTES_MAX and not line.endswith(b"\n"):
            line = stream.readline(PAGE_BYTES_MAX + 1)
