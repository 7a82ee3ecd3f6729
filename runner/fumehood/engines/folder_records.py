"""Folders that a running command needs, noted on disk, so that a later start finds what lost its owner.

The note is written before the folder is made and removed after it: whatever dies in between, no folder is
without a note. Names are drawn at random, so a note cannot come to mean somebody else's folder.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from fumehood.engines.engine import OwnerCheck
from fumehood.engines.session_records import claim_folder, default_folder, write_note


class FolderRecords:
    """Notes about folders, one small file each."""

    def __init__(self, notes: Path | None = None, below: Path | None = None) -> None:
        """Say where; nothing is made yet.

        Args:
            notes: where notes are kept; None for this user's usual place.
            below: where folders are made; None for the usual place of temporary files.
        """
        self._notes = notes or default_folder("folders")
        self._below = below or Path(tempfile.gettempdir())

    def make(self, labels: Mapping[str, str]) -> Path:
        """Make a folder that belongs to the owner named by ``labels``, closed to all others.

        Its name says nothing, for a box may see the host's path of what it is shown, and is short, because a
        socket's path has at most 107 bytes.

        Raises:
            InfraError: notes cannot be kept here.
        """
        claim_folder(self._notes)
        folder = self._below / secrets.token_hex(5)
        write_note(self._note(folder), {"folder": str(folder), "labels": dict(labels)})
        folder.mkdir(mode=0o700)
        return folder

    def remove(self, folder: Path) -> None:
        """Remove a folder with all that is in it, and its note."""
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            self._note(folder).unlink(missing_ok=True)

    def lost(self, is_owned: OwnerCheck) -> list[tuple[Path, dict[str, str]]]:
        """Return the folders that lost their owner, and their labels; forget what is gone already."""
        found = []
        for note in sorted(self._notes.glob("*.json")) if self._notes.exists() else ():
            folder, labels = _read(note)
            if is_owned(labels):
                continue
            if folder is not None and _is_ours(folder):
                found.append((folder, labels))
            else:
                note.unlink(missing_ok=True)
        return found

    def reap(self, is_owned: OwnerCheck) -> int:
        """Remove the folders that lost their owner and return how many there were."""
        lost = self.lost(is_owned)
        for folder, _ in lost:
            self.remove(folder)
        return len(lost)

    def _note(self, folder: Path) -> Path:
        return self._notes / f"{folder.name}.json"


@contextmanager
def owned_folder(labels: Mapping[str, str]) -> Iterator[Path]:
    """Make a folder that goes with the context, or when a later command finds that its owner is gone."""
    records = FolderRecords()
    folder = records.make(labels)
    try:
        yield folder
    finally:
        records.remove(folder)


def _read(note: Path) -> tuple[Path | None, dict[str, str]]:
    with suppress(OSError, ValueError, KeyError, TypeError):
        value = json.loads(note.read_text("utf-8"))
        return Path(value["folder"]), dict(value["labels"])
    return None, {}  # Torn: its writer was stopped before it made a folder.


def _is_ours(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
