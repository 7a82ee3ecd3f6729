"""What a process remembers of a run that it verifies repeatedly, as ``fumehood watch`` does."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from fumehood.records.files import open_plain
from fumehood.records.seals import RunSeal

_CHUNK_BYTES = 1 << 20

Stamp = tuple[int, ...]
T = TypeVar("T")
AnyPath = str | Path
P = TypeVar("P", bound=AnyPath)


class RunMemory:
    """Results of reading one run folder. A file that changes is read again.

    A new seal, such as that of the finished run, makes the next verification read everything. One
    file may grow, that of the packed traces. Its parts are read again if its earlier content
    changed.
    """

    def __init__(self) -> None:
        self._seal: RunSeal | None = None
        self._files: dict[tuple[AnyPath, Hashable], tuple[Stamp, Any]] = {}
        self._stamps: dict[AnyPath, Stamp] = {}
        """Of the files of the last verification."""
        self._rows: dict[Hashable, Any] = {}
        self._parts: dict[Hashable, Any] = {}
        """Of the file that only grows."""
        self._grown_stamp: Stamp = ()
        self._grown = 0, b""
        """Size of that file at its last reading, and its digest."""

    def begin(self, seal: RunSeal) -> None:
        """Begin a verification; forget the files if the run has another seal than before."""
        if seal != self._seal:
            self._files.clear()
            self._parts.clear()
        self._stamps.clear()
        self._seal = seal

    def of_file(self, path: P, read: Callable[[P], T]) -> T:
        """Return what ``read`` returns for a file, or returned if the file is unchanged."""
        stamp = self._stamps[path] = _stamp(path)
        known = self._files.get((path, read))
        if known is not None and known[0] == stamp:
            result: T = known[1]
            return result
        result = read(path)
        if stamp:
            self._files[path, read] = stamp, result
        return result

    def begin_growing(self, path: Path) -> None:
        """Read a file that only grows, if it changed; forget its parts if its earlier content
        changed.

        Call this before its parts are read, so that the next call finds a change in between.

        Args:
            path: of the file, which may not exist.
        """
        stamp = self._stamps[path] = _stamp(path)
        if stamp == self._grown_stamp:
            return
        known_bytes, known_digest = self._grown
        digest, size_bytes, is_unchanged = sha256(), 0, known_bytes == 0
        try:
            with open_plain(path) as file:
                while content := file.read(_next_bytes(size_bytes, known_bytes)):
                    digest.update(content)
                    size_bytes += len(content)
                    if size_bytes == known_bytes:
                        is_unchanged = digest.digest() == known_digest
        except OSError:
            is_unchanged = False
        if not is_unchanged:
            self._parts.clear()
        self._grown_stamp, self._grown = stamp, (size_bytes, digest.digest())

    def of_part(self, part: Hashable, compute: Callable[[], T]) -> T:
        """Return what follows from a part of the file that only grows, computed once while the
        file is unchanged.

        Args:
            part: the place of the part and what is computed.
            compute: returns the value.
        """
        return _once(self._parts, part, compute)

    def of_row(self, row: Hashable, compute: Callable[[], T]) -> T:
        """Return what follows from a sealed row, computed once.

        Args:
            row: the digest of the row and what is computed.
            compute: returns the value.
        """
        return _once(self._rows, row, compute)

    def is_stale(self) -> bool:
        """Return whether a file changed after the last verification."""
        return any(_stamp(path) != stamp for path, stamp in self._stamps.items())


def _once(known: dict[Hashable, Any], key: Hashable, compute: Callable[[], T]) -> T:
    if key not in known:
        known[key] = compute()
    result: T = known[key]
    return result


def _next_bytes(read_bytes: int, known_bytes: int) -> int:
    """Return how much to read, so that a reading ends where the known content ends."""
    left_bytes = known_bytes - read_bytes
    return min(left_bytes, _CHUNK_BYTES) if left_bytes > 0 else _CHUNK_BYTES


def _stamp(path: AnyPath) -> Stamp:
    """Return what changes with a file; only the change time cannot be set back (inode(7))."""
    try:
        status = os.lstat(path)
    except OSError:
        return ()
    return (
        *(status.st_dev, status.st_ino, status.st_mode, status.st_size),
        *(status.st_mtime_ns, status.st_ctime_ns),
    )
