"""Memory-mapped, sorted tables of strings: terms, document IDs, URLs, field values.

``NAME.utf8`` holds the concatenated strings, ``NAME.npy`` the offset of each string and the total
length. Strings are sorted by UTF-8 bytes, which is the order of code points, so bisection finds a
string, and opening takes constant time.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from fumehood_snapshots.errors import SnapshotDamagedError
from fumehood_snapshots.format.arrays import map_array, save_array

OFFSETS_TYPE = "<i8"


def table_files(stem: str) -> tuple[str, str]:
    """Return the two relative file names of a table."""
    return f"{stem}.utf8", f"{stem}.npy"


def write_strings(root: Path, stem: str, strings: Iterable[str]) -> int:
    """Write a table.

    Args:
        root: the snapshot's folder.
        stem: relative path without a suffix.
        strings: sorted by code point, without repetitions.

    Returns:
        The number of strings.
    """
    blob, offsets = (root / name for name in table_files(stem))
    blob.parent.mkdir(parents=True, exist_ok=True)
    encoded = [string.encode("utf-8") for string in strings]
    blob.write_bytes(b"".join(encoded))
    ends = np.zeros(len(encoded) + 1, dtype=OFFSETS_TYPE)
    np.cumsum(np.fromiter(map(len, encoded), dtype=OFFSETS_TYPE, count=len(encoded)), out=ends[1:])
    save_array(offsets, ends, OFFSETS_TYPE)
    return len(encoded)


def map_file(path: Path) -> bytes | mmap.mmap:
    """Map a file for reading; return empty bytes for an empty file, which cannot be mapped."""
    with path.open("rb") as stream:
        if path.stat().st_size == 0:
            return b""
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


class StringTable:
    """A memory-mapped table; equal to the sequence from which it was written."""

    def __init__(self, blob: Path, offsets: Path) -> None:
        """Map both files.

        Raises:
            SnapshotDamagedError: the offsets are not an array or do not match the strings.
        """
        self._blob = map_file(blob)
        # A view that returns Python integers: bisection takes twenty steps per query term.
        self._offsets = map_array(offsets, OFFSETS_TYPE).data
        if len(self._offsets) == 0 or self._offsets[-1] != len(self._blob):
            raise SnapshotDamagedError(
                f"{offsets.name} does not match {blob.name}; the snapshot is damaged"
            )

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> str:
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self._bytes(number).decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        # Convert all offsets at once, which saves a microsecond per string.
        blob, ends = bytes(self._blob[:]), self._offsets.tolist()
        if blob.isascii():
            text = blob.decode("ascii")
            return (text[begin:end] for begin, end in pairwise(ends))
        return (blob[begin:end].decode("utf-8") for begin, end in pairwise(ends))

    def find(self, string: str) -> int | None:
        """Return the number of ``string``, or None if it is not in the table."""
        try:
            wanted = string.encode("utf-8")
        except UnicodeEncodeError:
            return None
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._bytes(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self._bytes(low) == wanted else None

    def _bytes(self, number: int) -> bytes:
        return bytes(self._blob[self._offsets[number] : self._offsets[number + 1]])
