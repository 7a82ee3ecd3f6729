"""Reserves a separate user for each box, and releases it when the box is gone.

The kernel counts inotify instances, timers, pending signals and pipe buffers per user, and a user
may signal and trace its own processes. Boxes of one user would share all of that.

A reservation is a record of its owner, like that of a folder. All runs of a user of this machine
share the folder of the records, and change it under a lock, so no two boxes have the same user.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from fumehood.core.errors import InfraError
from fumehood.core.user_ids import BOX_UIDS
from fumehood.engines.engine import OwnerCheck
from fumehood.engines.records import write_record
from fumehood.engines.state_folder import claim_folder, machine_folder

ATTEMPTS = 1000
_LOCK = ".lock"


class BoxUsers:
    """The reserved users of boxes. Safe to use from several threads and processes."""

    def __init__(self, folder: Path | None = None, users: Sequence[int] = BOX_UIDS) -> None:
        """Set the folder of the records, by default the one that all runs of this user share."""
        self._given = folder
        self._users = users

    @cached_property
    def _folder(self) -> Path:
        return self._given or machine_folder("users")

    def reserve(self, labels: Mapping[str, str]) -> int:
        """Reserve a user that no other box has, for the owner that ``labels`` names.

        The number is random, because another user of this machine may run boxes too.

        Raises:
            InfraError: the record cannot be written, or all users are reserved.
        """
        with self._locked():
            for _ in range(ATTEMPTS):
                user = random.choice(self._users)
                if not self._record(user).exists():
                    write_record(self._record(user), dict(labels))
                    return user
        raise InfraError(
            f"found no free user for a box among {len(self._users)}: run `fumehood clean`, or "
            f"remove {self._folder} while no box runs"
        )

    def release(self, user: int) -> None:
        """Release a user whose box is gone."""
        self._record(user).unlink(missing_ok=True)

    def reap(self, is_owned: OwnerCheck, is_gone: Callable[[int], bool] = lambda user: True) -> int:
        """Release the users without an owner of which no process runs, and return their number.

        ``is_gone`` removes what is named after a user, such as a control group with its processes,
        and returns whether that succeeded.
        """
        if not os.path.lexists(self._folder):
            return 0
        with self._locked():
            lost = [
                record for record in self._folder.glob("*.json") if not is_owned(_labels(record))
            ]
            gone = [record for record in lost if is_gone(int(record.stem))]
            busy = _users_of_processes() if gone else frozenset()
            free = [record for record in gone if record.stem not in busy]
            for record in free:
                record.unlink(missing_ok=True)
            return len(free)

    def reserved(self) -> frozenset[int]:
        """Return the users that are reserved now."""
        return frozenset(int(record.stem) for record in self._folder.glob("*.json"))

    def _record(self, user: int) -> Path:
        return self._folder / f"{user}.json"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        claim_folder(self._folder)
        lock = os.open(self._folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _labels(record: Path) -> dict[str, str]:
    with suppress(OSError, ValueError):
        return dict(json.loads(record.read_text("utf-8")))
    return {}


def _users_of_processes() -> frozenset[str]:
    """Return the real user of every process, as text; source: proc(5), status."""
    users: set[str] = set()
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            lines = status.read_text("utf-8", errors="replace").splitlines()
            users.update(line.split()[1] for line in lines if line.startswith("Uid:"))
    return frozenset(users)
