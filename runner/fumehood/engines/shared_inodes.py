"""Keeps boxes from locking the inodes that the kernel shares between all processes.

All event, timer and epoll descriptors of a machine have one inode, and each namespace has one.
Every process can open them, so a box could carry messages in record locks on them. A million locks
on the first inode also delay each close of such a descriptor on the whole machine by milliseconds.
A filter of system calls cannot distinguish these descriptors from files. This process therefore
holds locks on the inodes: a box gets no lock that conflicts with them, and reads only the lock that
was placed first. No ordinary program uses such locks.

Source: Linux, fs/anon_inodes.c, fs/nsfs.c and fs/locks.c; fcntl(2), "Open file description locks".
"""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress
from functools import cache
from threading import Thread

_FLOCK = "hhqqi4x"
"""struct flock of fcntl(2) on processors of 64 bits: type, whence, start, length, process."""
_TO_THE_END = 0
_NAMESPACES = ("time", "user")
"""Those that boxes can share with this process."""
_DEVICES = ("full", "null", "random", "urandom", "zero")
"""Files of /dev that boxes of an ordinary user share with the host: only root makes devices."""


@cache
def hold_shared_inodes() -> None:
    """Lock the shared inodes until this process ends; has no effect the second time.

    If another process holds them, such as a second run, a thread waits to take over.
    """
    anonymous = os.eventfd(0)
    try:
        _lock(anonymous, fcntl.F_WRLCK)
    except OSError:
        Thread(target=_wait, args=(anonymous,), name="shared-inodes", daemon=True).start()
    for name in _NAMESPACES:
        # Read locks: the descriptor cannot write. Boxes can add read locks, but cannot see them.
        with suppress(OSError):  # An older kernel has no time namespaces.
            _lock(os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC), fcntl.F_RDLCK)


@cache
def hold_shared_devices() -> None:
    """Lock the devices of the host that boxes of an ordinary user see, like
    :func:`hold_shared_inodes`, but only against writers: other programs can add read locks."""
    for name in _DEVICES:
        with suppress(OSError):  # Another program has a lock that excludes others.
            _lock(os.open(f"/dev/{name}", os.O_RDONLY | os.O_CLOEXEC), fcntl.F_RDLCK)


def _lock(descriptor: int, kind: int) -> None:
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _request(kind))
    fcntl.flock(descriptor, fcntl.LOCK_NB | _FLOCK_KINDS[kind])


def _wait(descriptor: int) -> None:
    with suppress(OSError):
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLKW, _request(fcntl.F_WRLCK))
        fcntl.flock(descriptor, fcntl.LOCK_EX)


_FLOCK_KINDS = {fcntl.F_WRLCK: fcntl.LOCK_EX, fcntl.F_RDLCK: fcntl.LOCK_SH}


def _request(kind: int) -> bytes:
    return struct.pack(_FLOCK, kind, os.SEEK_SET, 0, _TO_THE_END, 0)
