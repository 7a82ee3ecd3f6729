"""The traces of many short episodes in one file.

Creating a file takes longer than playing a short episode. A run with many of them therefore appends
their traces to ``traces.jsonl``, and a row names its part: ``traces.jsonl@START+SIZE``, in bytes.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from fumehood.records.files import append_whole, read_part, read_plain

PACK = "traces.jsonl"
_PART = re.compile(rf"{re.escape(PACK)}@(\d{{1,15}})\+(\d{{1,15}})")


@dataclass(frozen=True, slots=True)
class PackedTrace:
    """The place of a trace in the pack of its run."""

    start: int
    """Position of its first byte."""
    size: int
    """Bytes."""

    def __str__(self) -> str:
        return f"{PACK}@{self.start}+{self.size}"

    @classmethod
    def parse(cls, where: str) -> PackedTrace | None:
        """Return the place that a row names; None if the trace has its own file."""
        match = _PART.fullmatch(where)
        return cls(int(match[1]), int(match[2])) if match else None

    def after(self, others_bytes: int) -> PackedTrace:
        """Return the place of the trace after other traces of this many bytes."""
        return PackedTrace(self.start + others_bytes, self.size)


def file_of_trace(where: str) -> str:
    """Return the path of the file with a trace, which may have other traces too."""
    return PACK if PackedTrace.parse(where) else where


def read_trace_content(folder: Path, where: str) -> bytes:
    """Return the content of a trace.

    Args:
        folder: of the run.
        where: path of the trace within the folder, or its part of the pack.

    Raises:
        OSError: there is no such regular file, or it is too short.
    """
    part = PackedTrace.parse(where)
    if part is None:
        return read_plain(f"{folder}/{where}")
    return read_part(f"{folder}/{PACK}", part.start, part.size)


class TracePack:
    """Appends traces to the pack of a run. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        """Open the pack, which may not exist yet.

        Args:
            folder: of the run.
        """
        self._path = folder / PACK
        self._lock = Lock()
        self._size = os.path.getsize(self._path) if self._path.exists() else 0
        self._pending: list[bytes] = []
        self._pending_bytes = 0

    def add(self, content: bytes) -> str:
        """Return the place that a trace gets; :meth:`write` writes it there."""
        with self._lock:
            place = PackedTrace(self._size + self._pending_bytes, len(content))
            self._pending.append(content)
            self._pending_bytes += len(content)
        return str(place)

    def write(self) -> None:
        """Append all traces that were added, without flushing them to the disk.

        Raises:
            OSError: the disk is full, or another program removed or changed the pack; nothing was
                appended.
        """
        with self._lock:
            if self._pending:
                content = b"".join(self._pending)
                self._size = append_whole(self._path, content, self._size, is_flushed=False)
                self._pending.clear()
                self._pending_bytes = 0
