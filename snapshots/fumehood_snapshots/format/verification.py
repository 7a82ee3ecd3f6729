"""Verifies the files of a snapshot against its manifest."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from pathlib import Path

from fumehood_snapshots.errors import SnapshotDamagedError
from fumehood_snapshots.format.hashing import sha256_file
from fumehood_snapshots.format.layout import MANIFEST, listed_path
from fumehood_snapshots.format.manifest import FileEntry, Manifest


def check_sizes(root: Path, manifest: Manifest) -> None:
    """Check that every listed file is inside ``root`` and has its size, and that ``root`` contains
    no other file; read no contents.

    Raises:
        SnapshotDamagedError: a file is missing, has another size or is not listed; names the first.
    """
    # An unlisted file could be a link to a file of the host.
    _check_nothing_else(root, manifest)
    for relative, entry in sorted(manifest.files.items()):
        _check_size(listed_path(root, relative), relative, entry)


def check_contents(root: Path, manifest: Manifest) -> None:
    """Check the hash of every listed file; see :func:`check_sizes`.

    Args:
        root: the snapshot's folder.
        manifest: of the snapshot.

    Raises:
        SnapshotDamagedError: a file differs; names the first.
    """
    check_sizes(root, manifest)
    entries = sorted(manifest.files.items())
    with ThreadPoolExecutor(max_workers=cpu_count()) as pool:
        digests = pool.map(lambda item: sha256_file(root / item[0]), entries)
        for (relative, entry), digest in zip(entries, digests, strict=True):
            if digest != entry.sha256:
                raise SnapshotDamagedError(
                    f"{relative} has changed: its SHA-256 is {digest[:12]}…, "
                    f"the manifest says {entry.sha256[:12]}…"
                )


def _check_size(path: Path, relative: str, entry: FileEntry) -> None:
    size = path.stat().st_size
    if size != entry.bytes:
        raise SnapshotDamagedError(f"{relative} has {size} bytes, the manifest says {entry.bytes}")


def _check_nothing_else(root: Path, manifest: Manifest) -> None:
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root).as_posix()
        is_folder = path.is_dir() and not path.is_symlink()
        if not is_folder and relative != MANIFEST and relative not in manifest.files:
            raise SnapshotDamagedError(f"{relative} is in the folder but not in the manifest")
