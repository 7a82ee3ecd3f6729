"""Notes on disk about running sessions of processes, so that a later start finds what lost its owner.

One small file a session, named after its leader, removed when the session is closed. The folder belongs to
one user and is read by nobody else.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from fumehood.core.errors import InfraError
from fumehood.engines.engine import OwnerCheck
from fumehood.engines.ownership import start_time

_SESSION_FIELD = 3
"""Of /proc/PID/stat after the name, counted from 0. Source: proc(5)."""


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One session: who leads it, and whose it is."""

    leader: int
    """Process number, and that of the session."""
    leader_start: int | None
    """When the leader was started, clock ticks; None when it had ended before one looked."""
    labels: dict[str, str]
    mark: str = ""
    """First word of the command line of processes that belong to it though they left the session; a text that
    no other process has. Empty where none can leave."""


class SessionRecords:
    """A folder of records."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, leader: int, labels: dict[str, str], mark: str = "") -> Path:
        """Note a session and return its file.

        Raises:
            InfraError: the folder is not ours alone.
        """
        claim_folder(self._folder)
        file = self._folder / f"{leader}.json"
        write_note(file, asdict(SessionRecord(leader, start_time(leader), labels, mark)))
        return file

    def lost(self, is_owned: OwnerCheck) -> list[SessionRecord]:
        """Return the sessions that lost their owner and of which something still runs."""
        records = [record for _, record in self._lost(is_owned) if record is not None]
        return [record for record in records if any(_left_of(record))]

    def reap(self, is_owned: OwnerCheck) -> int:
        """Kill the sessions that lost their owner, forget their records and return how many there were."""
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
        found = [(file, _read(file)) for file in sorted(self._folder.glob("*.json"))]
        return [
            (file, record)
            for file, record in found
            if record is None or not is_owned(record.labels)
        ]


def write_note(file: Path, content: Mapping[str, object]) -> None:
    """Write a note whole: who starts meanwhile must not take half of it for a dead owner's."""
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(content), "utf-8")
    unfinished.replace(file)


def claim_folder(folder: Path) -> None:
    """Make a folder of this user alone, or make sure that it is one.

    Raises:
        InfraError: it is somebody else's, or others may look into it.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise InfraError(f"{folder} is not a folder of this user alone; remove it")


def default_folder(what: str = "sessions") -> Path:
    """Return the folder for this user's records of ``what``, which a restart of the machine may empty."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / f"fumehood-{what}"
    return Path(tempfile.gettempdir()) / f"fumehood-{what}-{os.geteuid()}"


def _read(file: Path) -> SessionRecord | None:
    try:
        return SessionRecord(**json.loads(file.read_text("utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None  # Torn: its writer was stopped while it wrote.


def _kill_session(record: SessionRecord) -> None:
    for pid in _left_of(record):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _left_of(record: SessionRecord) -> Iterator[int]:
    if _is_the_same(record):
        yield from _members(record.leader)
    if record.mark:
        yield from _marked(record.mark.encode())


def _is_the_same(record: SessionRecord) -> bool:
    """Tell whether the leader's number was not used again; while it is, no process of the session is left."""
    return start_time(record.leader) in (None, record.leader_start)


def _members(session: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            fields = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[_SESSION_FIELD]) == session:
            yield int(entry.name)


def _marked(mark: bytes) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if (
                entry.name.isdecimal()
                and (entry / "cmdline").read_bytes().split(b"\0", 1)[0] == mark
            ):
                yield int(entry.name)


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
            folder, labels = _read_folder_note(note)
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


def _read_folder_note(note: Path) -> tuple[Path | None, dict[str, str]]:
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
