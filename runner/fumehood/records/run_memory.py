"""What a process remembers of a run that it verifies repeatedly, as ``fumehood watch`` does."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

from fumehood.records.seals import RunSeal

Stamp = tuple[int, ...]
T = TypeVar("T")
AnyPath = str | Path
P = TypeVar("P", bound=AnyPath)


class RunMemory:
    """Results of reading one run folder. A file that changes is read again.

    A new seal, such as that of the finished run, makes the next verification read everything.
    """

    def __init__(self) -> None:
        self._seal: RunSeal | None = None
        self._files: dict[tuple[AnyPath, Hashable], tuple[Stamp, Any]] = {}
        self._stamps: dict[AnyPath, Stamp] = {}
        """Of the files of the last verification."""
        self._rows: dict[Hashable, Any] = {}

    def begin(self, seal: RunSeal) -> None:
        """Begin a verification; forget the files if the run has another seal than before."""
        if seal != self._seal:
            self._files.clear()
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

    def of_row(self, row: Hashable, compute: Callable[[], T]) -> T:
        """Return what follows from a sealed row, computed once.

        Args:
            row: the digest of the row and what is computed.
            compute: returns the value.
        """
        if row not in self._rows:
            self._rows[row] = compute()
        result: T = self._rows[row]
        return result

    def is_stale(self) -> bool:
        """Return whether a file changed after the last verification."""
        return any(_stamp(path) != stamp for path, stamp in self._stamps.items())


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
