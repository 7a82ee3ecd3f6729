"""Reserves user IDs of a range, so that no two processes of this machine have the same one.

A reservation is a lock on the byte with that number in a file that only root can open. Other local
users can therefore not take reservations. The kernel removes a lock when the processes that have
the file open end. Source: fcntl(2), "Open file description locks".
"""

from __future__ import annotations

import fcntl
import os
import secrets
import struct
from functools import cache

_FILE = "/run/fumehood-users.lock"
"""In a folder of root."""
_FLOCK = "hhqqi4x"
"""struct flock of fcntl(2) on processors of 64 bits: type, whence, start, length, process."""


class UserLease:
    """One user ID, which this process holds until ``release``."""

    def __init__(self, users: range) -> None:
        """Take a free user ID of a range.

        Raises:
            OSError: every number is taken.
        """
        self._file = os.open(lock_file(), os.O_RDWR | os.O_CLOEXEC)
        # A random start makes it unlikely that a number is used again soon.
        first = secrets.randbelow(len(users))
        for number in range(len(users)):
            self.uid = users[(first + number) % len(users)]
            request = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, self.uid, 1, 0)
            try:
                fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, request)
                return
            except BlockingIOError:
                pass  # It is taken.
        os.close(self._file)
        raise OSError(f"all users from {users.start} to {users.stop - 1} are taken")

    def release(self) -> None:
        """Release the user ID; no process may have it any more."""
        os.close(self._file)


@cache
def lock_file() -> str:
    """Return the path of the file with the locks, which exists. Only for root."""
    try:
        flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        os.close(os.open(_FILE, flags, mode=0o600))
    except OSError:
        # A read-only file system: only the children of this process have different users for
        # certain, and those of others because the numbers are random.
        return f"/proc/self/fd/{os.memfd_create('fumehood-users')}"
    return _FILE
