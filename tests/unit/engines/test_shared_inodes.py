"""A process that holds the shared inodes keeps others from locking them."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

DEADLINE_S = 60
HOLDER = """
from fumehood.engines.shared_inodes import hold_shared_inodes
hold_shared_inodes()
hold_shared_inodes()
print("held", flush=True)
input()
"""


@pytest.fixture
def event() -> Iterator[int]:
    descriptor = os.eventfd(0)
    yield descriptor
    os.close(descriptor)


def _is_locked(descriptor: int) -> bool:
    """Try a lock of one byte, and release it."""
    for kind in (fcntl.F_RDLCK, fcntl.F_UNLCK):
        try:
            request = struct.pack("hhqqi4x", kind, os.SEEK_SET, 7, 1, 0)
            fcntl.fcntl(descriptor, fcntl.F_SETLK, request)
        except BlockingIOError:
            return True
    return False


def _is_free_in_time(descriptor: int) -> bool:
    deadline = time.monotonic() + 5
    while _is_locked(descriptor):
        if time.monotonic() > deadline:
            return False
        os.sched_yield()
    return True


def _holder() -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_without_a_holder_any_process_can_lock_the_inode_of_all_events(event: int) -> None:
    if not _is_free_in_time(event):
        pytest.skip("another command holds the shared inodes")
    assert not _is_locked(event)


def test_a_holder_keeps_others_from_locking_the_inode_of_all_events(event: int) -> None:
    holder = _holder()
    assert _is_locked(event)
    with pytest.raises(BlockingIOError):
        fcntl.flock(event, fcntl.LOCK_SH | fcntl.LOCK_NB)
    holder.communicate("\n", timeout=DEADLINE_S)


def test_a_second_holder_takes_over_from_the_first(event: int) -> None:
    first, second = _holder(), _holder()
    first.communicate("\n", timeout=DEADLINE_S)
    deadline = time.monotonic() + DEADLINE_S
    while not _is_locked(event):
        assert time.monotonic() < deadline
    second.communicate("\n", timeout=DEADLINE_S)
    assert (first.returncode, second.returncode) == (0, 0)


def test_a_holder_hides_read_locks_of_others_on_a_namespace() -> None:
    holder = _holder()
    namespace = os.open("/proc/self/ns/user", os.O_RDONLY)
    question = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 7, 1, 0)
    answer = struct.unpack("hhqqi4x", fcntl.fcntl(namespace, fcntl.F_GETLK, question))
    os.close(namespace)
    holder.communicate("\n", timeout=DEADLINE_S)
    assert answer[:4] == (fcntl.F_RDLCK, os.SEEK_SET, 0, 0)
