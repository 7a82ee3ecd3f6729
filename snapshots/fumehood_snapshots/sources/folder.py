"""A folder of HTML, Markdown and text files (also text taken from PDFs), searched through recursively."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from urllib.parse import quote

from fumehood_snapshots.captures.capture import Capture
from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.extraction.extracted import UnreadablePageError
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
        """Its path in the folder, escaped where it is not plain."""
        return _escaped(PurePath(self.relative))

    def read(self, extractor: str) -> Reading:
        """Read and extract the file.

        Raises:
            UnreadablePageError: it cannot be read or holds no text.
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
    """A folder of files; other types than those of :data:`MEDIA_TYPES` are left alone."""

    def __init__(self, path: Path, base_url: str = "") -> None:
        """Take note of the folder; reads nothing.

        Args:
            path: the folder.
            base_url: the URL under which its files were published, with the trailing slash; empty for none.

        Raises:
            SnapshotInputError: there is no such folder, or the URL is none.
        """
        if base_url and not re.match(r"https?://[^/\s]", base_url):
            raise SnapshotInputError(
                f"{base_url!r} is no URL; say one such as https://docs.example.org/"
            )
        if not path.is_dir():
            raise SnapshotInputError(f"{path}: there is no such folder")
        self._path = path
        self._base_url = base_url

    def entry(self) -> InputEntry:
        """Describe the folder: one hash over the names and hashes of its files."""
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
        found = (path for path in self._path.rglob("*") if path.suffix.lower() in MEDIA_TYPES)
        # A link that leads out of the folder is not a part of it.
        inside = (path for path in found if path.is_file() and path.resolve().is_relative_to(root))
        return sorted(inside, key=lambda path: path.relative_to(self._path).as_posix())


def _escaped(path: PurePath) -> str:
    """Return a relative path as a URL would say it, also where it is not valid Unicode."""
    return quote(path.as_posix(), errors="surrogateescape")
