"""A folder as what a daemon builds from, such that equal contents make equal images."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import IO


def write_context(folder: Path, context: IO[bytes]) -> None:
    """Write all that a folder holds into a tar, and go back to its beginning."""
    with tarfile.open(fileobj=context, mode="w") as archive:
        for file in sorted(folder.rglob("*")):
            archive.add(file, str(file.relative_to(folder)), recursive=False, filter=_plain)
    context.seek(0)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry
