"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, content: str) -> None:
    """Write so that the file is there whole or not at all, whatever happens meanwhile."""
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def force_to_disk(path: Path) -> None:
    """Wait until a file, if it is there, would outlast a power cut."""
    with suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_or_remove(path: Path, content: str) -> None:
    """Write a file that may be torn only by a power cut: where there is no room, nothing of it stays."""
    try:
        with path.open("w", encoding="ascii") as file:
            file.write(content)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def append_whole(path: Path, lines: bytes) -> None:
    """Append whole lines for good or, where there is no room for them, nothing of them."""
    with path.open("ab", buffering=0) as file:
        before = file.tell()
        try:
            written = file.write(lines)
            if written != len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
        except OSError:
            file.truncate(before)
            raise
