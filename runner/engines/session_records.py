"""Notes on disk about running sessions of processes, so that a later start finds what lost its owner.

One small file a session, named after its leader, removed when the session is closed. The folder belongs to
one user and is read by nobody else.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from runner.core.errors import InfraError
from runner.engines.engine import OwnerCheck
from runner.engines.ownership import start_time

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


class SessionRecords:
    """A folder of records."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, leader: int, labels: dict[str, str]) -> Path:
        """Note a session and return its file.

        Raises:
            InfraError: the folder is not ours alone.
        """
        self._claim_folder()
        file = self._folder / f"{leader}.json"
        file.write_text(json.dumps(asdict(SessionRecord(leader, start_time(leader), labels))), "utf-8")
        return file

    def reap(self, is_owned: OwnerCheck) -> int:
        """Kill the sessions that lost their owner, forget their records and return how many there were."""
        if not self._folder.exists():
            return 0
        self._claim_folder()
        lost = 0
        for file in sorted(self._folder.glob("*.json")):
            record = _read(file)
            if record is None or not is_owned(record.labels):
                lost += 1
                if record is not None:
                    _kill_session(record)
                file.unlink(missing_ok=True)
        return lost

    def _claim_folder(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = self._folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise InfraError(f"{self._folder} is not a folder of this user alone; remove it")


def default_folder() -> Path:
    """Return the folder for this user's records, which a restart of the machine may empty."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "glovebox-sessions"
    return Path(tempfile.gettempdir()) / f"glovebox-sessions-{os.geteuid()}"


def _read(file: Path) -> SessionRecord | None:
    try:
        return SessionRecord(**json.loads(file.read_text("utf-8")))
    except (ValueError, TypeError):
        return None  # Torn: its writer was stopped while it wrote.


def _kill_session(record: SessionRecord) -> None:
    if start_time(record.leader) not in (None, record.leader_start):
        return  # The number was used again, so no process of the session is left.
    for pid in _members(record.leader):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


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
