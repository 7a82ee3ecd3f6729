"""What lies in a run folder and was never sealed. Knows nothing about episodes or keys."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from fumehood.records.plain_file import digest_file

COLLECTED = ("traces", "output", "cassette", "judge")
"""Folders in which every file belongs to an episode."""
SINGLE = ("run.json", "seal.json", "suite.jsonl", "episodes.jsonl")
DERIVED = ("report",)
"""Made of a run by later commands, and never sealed."""
_BODIES = ("cassette/bodies", "judge/bodies")
"""Their files are named after what they hold."""


def strays(path: Path, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield what does not belong to a run, each with what is wrong with it; follows no link.

    Args:
        path: of the run folder.
        known: files below ``COLLECTED`` that belong there, relative to the folder.
    """
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        if entry.is_symlink():
            yield entry.name, "a link, which no run makes"
        elif entry.name not in (COLLECTED + DERIVED if entry.is_dir() else SINGLE):
            yield entry.name, "not part of a run"
    for folder in COLLECTED:
        if not (path / folder).is_symlink():
            yield from _below(path, folder, known)


def _below(path: Path, folder: str, known: Collection[str]) -> Iterator[tuple[str, str]]:
    for parent, folders, files in os.walk(path / folder):
        folders.sort()
        within = Path(parent).relative_to(path)
        for name in (each for each in folders if os.path.islink(f"{parent}/{each}")):
            yield (within / name).as_posix(), "a link, which no run makes"
        for name in sorted(files):
            where = (within / name).as_posix()
            if os.path.islink(f"{parent}/{name}"):
                yield where, "a link, which no run makes"
            elif within.as_posix() in _BODIES:
                if name.removesuffix(".partial") == name and digest_file(path / where) != name:
                    yield where, "not what its name says"
            elif where not in known:
                yield where, "belongs to no episode"
