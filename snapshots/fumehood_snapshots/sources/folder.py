"""A folder of HTML, Markdown and text files, searched recursively."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from urllib.parse import quote

from fumehood_snapshots.captures.capture import Capture
from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.extraction.pages import UnreadablePageError
from fumehood_snapshots.format.hashing import canonical_json, sha256_file
from fumehood_snapshots.format.manifest import InputEntry
from fumehood_snapshots.sources.pages import PAGE_BYTES_MAX, PageItem
from fumehood_snapshots.sources.source import Item, Reading

MEDIA_TYPES = {
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".txt": "text/plain",
    ".text": "text/plain",
}


@dataclass(frozen=True, slots=True)
class FileItem:
    """One file, not yet read."""

    path: Path
    relative: str
    base_url: str
    size_bytes: int

    @property
    def where(self) -> str:
        """Its relative path, percent-encoded."""
        return _escaped(PurePath(self.relative))

    def read(self, extractor: str) -> Reading:
        """Read and extract the file.

        Raises:
            UnreadablePageError: it cannot be read, or contains no text.
        """
        if self.size_bytes > PAGE_BYTES_MAX:
            raise UnreadablePageError(f"larger than {PAGE_BYTES_MAX} bytes")
        try:
            body = self.path.read_bytes()
        except OSError as error:
            raise UnreadablePageError(f"cannot be read: {error.strerror}") from error
        name = self.where
        url = self.base_url + name if self.base_url else ""
        capture = Capture(
            uri=url or f"urn:file:{name}",
            fetched_at="",
            body=body,
            content_type=MEDIA_TYPES[self.path.suffix.lower()],
        )
        return PageItem(where=self.where, id=name, url=url, capture=capture).read(extractor)


class Folder:
    """A folder of files of the :data:`MEDIA_TYPES`; other files are ignored."""

    def __init__(self, path: Path, base_url: str = "") -> None:
        """Store the path and the URL of the published folder, which may be empty; read no file.

        Raises:
            SnapshotInputError: the folder does not exist, or the URL is invalid.
        """
        if base_url and not re.match(r"https?://[^/\s]", base_url):
            raise SnapshotInputError(
                f"{base_url!r} is not a URL; use a form such as https://docs.example.org/"
            )
        if not path.is_dir():
            raise SnapshotInputError(f"{path}: no such folder")
        self._path = path
        self._base_url = base_url

    def entry(self) -> InputEntry:
        """Return the manifest entry: one hash over the names and hashes of the files."""
        files = [
            (_escaped(path.relative_to(self._path)), sha256_file(path)) for path in self._files()
        ]
        digest = hashlib.sha256(canonical_json(files)).hexdigest()
        size = sum(path.stat().st_size for path in self._files())
        return InputEntry(kind="folder", name=self._path.resolve().name, bytes=size, sha256=digest)

    def items(self) -> Iterator[Item]:
        """Yield the files in the order of their paths."""
        for path in self._files():
            relative = path.relative_to(self._path).as_posix()
            yield FileItem(path, relative, self._base_url, path.stat().st_size)

    def _files(self) -> list[Path]:
        root = self._path.resolve()
        pages = (path for path in self._path.rglob("*") if path.suffix.lower() in MEDIA_TYPES)
        # A link that leaves the folder is not part of it.
        inside = (path for path in pages if path.is_file() and path.resolve().is_relative_to(root))
        return sorted(inside, key=lambda path: path.relative_to(self._path).as_posix())


def _escaped(path: PurePath) -> str:
    """Return a percent-encoded relative path, also for invalid Unicode."""
    return quote(path.as_posix(), errors="surrogateescape")
