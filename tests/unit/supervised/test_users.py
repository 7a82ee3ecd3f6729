"""Reservations of user IDs, which other processes and other users of the machine must respect."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable

import pytest

from fumehood.supervised.users import UserLease, lock_file

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root reserves users")

USERS = range(20, 22)
"""Bytes of the file that no run locks."""
ANOTHER_USER = 4242
DENIED = 13


def _in_child(work: Callable[[], int]) -> int:
    """Return what ``work`` returns in a child of this process, 1 to 255; 0 if it fails."""
    status, pid = 0, os.fork()
    if pid == 0:
        try:
            status = work()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_no_two_processes_reserve_the_same_user() -> None:
    one = UserLease(USERS)
    of_child = _in_child(lambda: UserLease(USERS).uid)
    two = UserLease(USERS)
    assert sorted((one.uid, two.uid)) == [*USERS]
    assert of_child == two.uid, "free again, because the child ended"
    with pytest.raises(OSError, match="all users from 20 to 21 are taken"):
        UserLease(USERS)
    one.release()
    again = UserLease(USERS)
    assert again.uid == one.uid
    again.release()
    two.release()


def test_a_killed_process_releases_its_users() -> None:
    own_end, child_end = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            leases = [UserLease(USERS) for _ in USERS]
            child_end.sendall(bytes(lease.uid for lease in leases))
            signal.pause()
        finally:
            os._exit(1)
    child_end.close()
    assert sorted(own_end.recv(len(USERS))) == [*USERS]
    with pytest.raises(OSError, match="are taken"):
        UserLease(USERS)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    UserLease(USERS).release()
    own_end.close()


def test_another_user_of_the_machine_cannot_take_reservations() -> None:
    lock_file()  # Exists before the change of the user.

    def open_file() -> int:
        os.setresuid(ANOTHER_USER, ANOTHER_USER, ANOTHER_USER)
        try:
            os.close(os.open(lock_file(), os.O_RDONLY))
        except OSError as error:
            return error.errno or 0
        return 0

    assert _in_child(open_file) == DENIED


def test_users_are_reserved_without_a_file_that_can_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fumehood.supervised.users._FILE", "/proc/fumehood-users.lock")
    lock_file.cache_clear()
    try:
        leases = [UserLease(USERS) for _ in USERS]
        assert sorted(lease.uid for lease in leases) == [*USERS]
        for lease in leases:
            lease.release()
    finally:
        lock_file.cache_clear()
