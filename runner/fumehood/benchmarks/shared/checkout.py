"""Finds files in a folder that the user checked out or downloaded."""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256
from io import BytesIO
from pathlib import Path

from fumehood.benchmarks.shared.reading import Place, Problem, Unreadable
from fumehood.core.errors import InputError

_PIECE_BYTES = 1 << 20


def checkout_folder(folder: str, *, contains: str, usage: str) -> Path:
    """Return the folder of a checkout as a path.

    Args:
        folder: path from the suite argument; may be empty.
        contains: name of a file or folder that every such checkout has.
        usage: form of the suite argument, for the error message.

    Raises:
        InputError: the folder is not such a checkout.
    """
    path = Path(folder)
    if not folder or not (path / contains).exists():
        place = folder or "the suite argument names no folder"
        raise InputError(f"{place}: not a checkout with {contains}; use {usage}")
    return path


def digest_of_folder(folder: Path) -> str:
    """Return the SHA-256 of the names, permissions and contents of all files of a folder."""
    digest = sha256()
    for path in sorted(path for path in folder.rglob("*") if not path.is_dir()):
        name, facts = path.relative_to(folder).as_posix(), path.lstat()
        target = os.fsencode(path.readlink()) if path.is_symlink() else None
        size = facts.st_size if target is None else len(target)
        digest.update(f"\0{name}\0{facts.st_mode:o}\0{size}\0".encode())
        # A file can be larger than the memory.
        with path.open("rb") if target is None else BytesIO(target) as content:
            while piece := content.read(_PIECE_BYTES):
                digest.update(piece)
    return digest.hexdigest()


def first_file(folder: Path, names: Iterable[str | Path]) -> Path:
    """Return the first of these files that exists in a folder.

    Raises:
        Unreadable: none of them exists.
    """
    candidates = [folder / name for name in names]
    for path in candidates:
        if path.is_file():
            return path
    wanted = ", ".join(str(path.relative_to(folder)) for path in candidates)
    raise Unreadable(Place(folder), Problem.NOT_FOUND, f"contains none of {wanted}")
