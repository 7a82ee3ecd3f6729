"""Reserves user IDs of a range, so that no two processes of this machine have the same one.

A reservation is an abstract Unix socket with the number in its name. The kernel removes it when the
process that holds it ends. Source: unix(7).
"""

from __future__ import annotations

import secrets
import socket


class UserLease:
    """One user ID, which this process holds until ``release``."""

    def __init__(self, users: range) -> None:
        """Take a free user ID of a range.

        Raises:
            OSError: every number is taken.
        """
        # A random start makes it unlikely that a number is used again soon.
        first = secrets.randbelow(len(users))
        for number in range(len(users)):
            self.uid = users[(first + number) % len(users)]
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                self._socket.bind(f"\0fumehood-user-{self.uid}")
                return
            except OSError:
                self._socket.close()
        raise OSError(f"all users from {users.start} to {users.stop - 1} are taken")

    def release(self) -> None:
        """Release the user ID; no process may have it any more."""
        self._socket.close()
