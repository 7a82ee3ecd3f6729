"""Finds files in a folder that the user checked out or downloaded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fumehood.benchmarks.shared.reading import Place, Problem, Unreadable
from fumehood.core.errors import InputError


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
