"""Which files hold a split: the published layouts (ToolMisuseBench, spec parts 1 and 10, correction C10)."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from fumehood.benchmarks.reading import Place, Problem, Unreadable
from fumehood.benchmarks.toolmisuse.record import Split
from fumehood.core.errors import InputError, nearest

SPLITS: tuple[Split, ...] = get_args(Split)


def task_files(root: Path, split: str) -> tuple[Path, ...]:
    """Return the files that the reference reads for a split.

    Those are all ``*.jsonl`` of ``root/split`` where that is a folder, else of ``root``, and then all
    ``*.json`` there, each in code-point order of their names. Folders below are not searched.

    Raises:
        Unreadable: there is no such folder, or no such file in it.
    """
    folder = root / split if (root / split).is_dir() else root
    if not folder.is_dir():
        raise Unreadable(Place(root), Problem.NOT_FOUND, "there is no such folder")
    files = (*sorted(folder.glob("*.jsonl")), *sorted(folder.glob("*.json")))
    if not files:
        raise Unreadable(Place(folder), Problem.NOT_FOUND, "holds no .jsonl or .json file")
    return files


def split_of_argument(argument: str) -> tuple[Path, str | None]:
    """Return the path and the split that ``PATH[:SPLIT]`` names; the split is None where none is named.

    Raises:
        InputError: there is no path, or what follows it is no split.
    """
    if not argument:
        raise InputError("toolmisuse needs a path: toolmisuse:PATH or toolmisuse:PATH:SPLIT")
    head, colon, tail = argument.rpartition(":")
    # A path may hold colons itself, so what is there as a whole is taken as a whole.
    if not colon or Path(argument).exists():
        return Path(argument), None
    if tail in SPLITS:
        return Path(head), tail
    if Path(head).exists():
        raise InputError(f"no split is called {tail!r}; {nearest(tail, SPLITS)}")
    return Path(argument), None
