"""Records on disk of running sessions of processes and of folders, so that later commands find
orphans.

Each session and each folder has one small file, in a folder that only this user can read. A
folder's record is written before the folder is made and removed after it, so no folder is ever
without a record. Names of folders are random, so an old record never refers to a newer folder.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from fumehood.engines.engine import Orphan, OrphanKind, OwnerCheck
from fumehood.engines.ownership import RUN, start_time
from fumehood.engines.state_folder import (
    claim_folder,
    known_folders,
    open_folder,
    state_folder,
    temporary_folder,
)

MARKER = ".fumehood-state"
"""Empty file in each recorded folder. Cleaning removes no folder with content and without it."""
_NAME_BYTES = 4
_NAME_OF_FOLDER = re.compile(f"[0-9a-f]{{{2 * _NAME_BYTES}}}")


def remove_tree(folder: Path) -> None:
    """Remove a folder with its content, however deep it is; what cannot be removed stays."""
    # An agent or an image can nest folders more deeply than Python can recurse.
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        subprocess.run(["rm", "-rf", "--", str(folder)], check=False, capture_output=True)


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One session and its owner."""

    leader: int
    """Process ID of the leader, and ID of the session."""
    leader_start: int | None
    """Start time of the leader in clock ticks; None if it had ended before the record was
    written."""
    labels: dict[str, str]
    mark: str = ""
    """``argv[0]`` of processes that belong to the box but left the session; no other process has
    it. Empty if none can leave."""
    first: int | None = None
    """Process ID of process 1 of the box; None if it is not known, or if there is no process
    namespace."""
    first_start: int | None = None
    """Start time of process 1 in clock ticks."""


class SessionRecords:
    """A folder of records of sessions."""

    def __init__(self, folder: Path | None = None) -> None:
        """Set the folder of the records, by default this user's, without side effects."""
        self._given = folder

    @cached_property
    def _folder(self) -> Path:
        return self._given or state_folder("sessions")

    def write(
        self, leader: int, labels: dict[str, str], mark: str = "", first: int | None = None
    ) -> Path:
        """Write the record of a session and return its file.

        Args:
            leader: process ID of the leader.
            labels: name the owner.
            mark: ``argv[0]`` of processes that can leave the session; empty if none can.
            first: process ID of process 1 of the box; None if it is not known.

        Raises:
            InfraError: another user has access to the folder.
        """
        claim_folder(self._folder)
        file = self._folder / f"{leader}.json"
        first_start = None if first is None else start_time(first)
        record = SessionRecord(leader, start_time(leader), labels, mark, first, first_start)
        write_record(file, asdict(record))
        return file

    def lost(self, is_owned: OwnerCheck) -> list[SessionRecord]:
        """Return the sessions without an owner of which a process still runs."""
        records = [record for _, record in self._lost(is_owned) if record is not None]
        return [record for record in records if any(_remaining(record))]

    def orphans(self, is_owned: OwnerCheck) -> list[Orphan]:
        """Return the sessions of :meth:`lost` as orphans."""
        return [
            Orphan(OrphanKind.PROCESSES, str(record.leader), record.labels.get(RUN, ""))
            for record in self.lost(is_owned)
        ]

    def remove(self, orphan: Orphan) -> None:
        """Kill the processes of an orphaned session; has no effect on other kinds and gone
        sessions."""
        file = self._folder / f"{orphan.name}.json"
        if orphan.kind is not OrphanKind.PROCESSES or not file.exists():
            return
        record = _read(file)
        if record is not None and record.labels.get(RUN, "") == orphan.run:
            _kill_session(record)
            file.unlink(missing_ok=True)

    def reap(self, is_owned: OwnerCheck) -> int:
        """Kill the sessions without an owner, remove their records and return their number."""
        lost = self._lost(is_owned)
        for file, record in lost:
            if record is not None:
                _kill_session(record)
            file.unlink(missing_ok=True)
        return len(lost)

    def _lost(self, is_owned: OwnerCheck) -> list[tuple[Path, SessionRecord | None]]:
        if not self._folder.exists():
            return []
        claim_folder(self._folder)
        records = [(file, _read(file)) for file in sorted(self._folder.glob("*.json"))]
        return [
            (file, record)
            for file, record in records
            if record is None or not is_owned(record.labels)
        ]


def write_record(file: Path, content: Mapping[str, object]) -> None:
    """Write a record atomically, so that no other command reads a part of it."""
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(content), "utf-8")
    unfinished.replace(file)


def _read(file: Path) -> SessionRecord | None:
    try:
        return SessionRecord(**json.loads(file.read_text("utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None  # Incomplete: its writer was killed.


def _kill_session(record: SessionRecord) -> None:
    for pid in _remaining(record):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _remaining(record: SessionRecord) -> Iterator[int]:
    if _is_same_leader(record):
        yield from _members(record.leader)
    if record.mark:
        yield from _marked(record.mark.encode())
    # An agent can overwrite the arguments of process 1, and so remove the mark.
    if record.first is not None and start_time(record.first) == record.first_start is not None:
        yield record.first


def _is_same_leader(record: SessionRecord) -> bool:
    """Return whether the leader's ID was not reused. The kernel reuses it only when the session is
    empty."""
    return start_time(record.leader) in (None, record.leader_start)


def _members(session: int) -> Iterator[int]:
    for pid in _processes():
        with suppress(ProcessLookupError):
            if os.getsid(pid) == session:
                yield pid


def _marked(mark: bytes) -> Iterator[int]:
    for pid in _processes():
        with suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0", 1)[0] == mark:
                yield pid


def _processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdecimal())


class FolderRecords:
    """Records of folders, one file each. Each folder holds a marker of this project."""

    def __init__(self, notes: Path | None = None, below: Path | None = None) -> None:
        """Set the folder of the records and the parent of the folders, by default this user's."""
        self._given_notes, self._given_below = notes, below

    @cached_property
    def _notes(self) -> Path:
        # Beside the folders, so that a command with another environment finds them together.
        return self._given_notes or open_folder() / "folders"

    def make(self, labels: Mapping[str, str]) -> Path:
        """Make a folder that only this user can enter, owned by the process that ``labels`` names.

        Its name is random, because a box may see the host's path of a mount, and short, because the
        path of a socket has at most 107 bytes.

        Raises:
            InfraError: the record cannot be written.
        """
        claim_folder(self._notes)
        folder = (self._given_below or open_folder()) / secrets.token_hex(_NAME_BYTES)
        write_record(self._record(folder), {"folder": str(folder), "labels": dict(labels)})
        folder.mkdir(mode=0o700)
        (folder / MARKER).touch()
        return folder

    def remove(self, folder: Path) -> None:
        """Remove a folder with its content, and its record."""
        remove_tree(folder)
        if not folder.exists():
            self._record(folder).unlink(missing_ok=True)

    def lost(self, is_owned: OwnerCheck) -> list[tuple[Path, dict[str, str]]]:
        """Return the folders without an owner, and their labels; remove records of folders that are
        gone or were not made by :meth:`make`.

        Raises:
            InfraError: another user can write the records, and could name any folder of this user.
        """
        if not os.path.lexists(self._notes):
            return []
        claim_folder(self._notes)
        lost = []
        for note in sorted(self._notes.glob("*.json")):
            folder, labels = _read_folder_record(note)
            if is_owned(labels):
                continue
            if folder is not None and self._was_made_here(folder):
                lost.append((folder, labels))
            else:
                note.unlink(missing_ok=True)
        return lost

    def reap(self, is_owned: OwnerCheck) -> int:
        """Remove the folders without an owner and return their number."""
        lost = self.lost(is_owned)
        for folder, _ in lost:
            self.remove(folder)
        return len(lost)

    def _record(self, folder: Path) -> Path:
        return self._notes / f"{folder.name}.json"

    def _was_made_here(self, folder: Path) -> bool:
        parents = {self._given_below} if self._given_below else known_folders()
        if folder.parent not in parents or not _NAME_OF_FOLDER.fullmatch(folder.name):
            return False
        try:
            status = folder.lstat()
            content = os.listdir(folder)
        except OSError:
            return False
        # Its maker may have been killed before it wrote the marker.
        has_marker = MARKER in content or not content
        return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and has_marker


def temporary_records() -> FolderRecords:
    """Return the records of folders with temporary files of services.

    They are beside these folders, because a restart of the machine removes records in memory.

    Raises:
        InfraError: no place for the folders is usable.
    """
    place = temporary_folder()
    return FolderRecords(place / "folders", place)


@contextmanager
def owned_folder(labels: Mapping[str, str]) -> Iterator[Path]:
    """Make a folder and remove it at the end; if this process dies, a later command removes it."""
    records = FolderRecords()
    folder = records.make(labels)
    try:
        yield folder
    finally:
        records.remove(folder)


def _read_folder_record(note: Path) -> tuple[Path | None, dict[str, str]]:
    with suppress(OSError, ValueError, KeyError, TypeError):
        value = json.loads(note.read_text("utf-8"))
        return Path(value["folder"]), dict(value["labels"])
    return None, {}  # Incomplete: its writer was killed before it made a folder.
