"""Gives a thread a mount namespace, and mounts file systems in it.

No other process sees these mounts, and the kernel removes them with the thread.
Source: mount_namespaces(7), mount(2).
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

from fumehood.engines.state_folder import claim_folder, machine_folder

READ_ONLY, NO_SETUID, NO_DEVICES, NO_PROGRAMS, REMOUNT, BIND = 1, 2, 4, 8, 32, 4096
"""MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT and MS_BIND."""
NEW_MOUNT_NAMESPACE, NEW_USER_NAMESPACE = 0x0002_0000, 0x1000_0000
_RECURSIVE, _SLAVE = 1 << 14, 1 << 19
_DETACH = 2
"""CLONE_NEWNS, CLONE_NEWUSER, MS_* and MNT_DETACH. Source: linux/sched.h, linux/mount.h."""


def views_folder() -> Path:
    """Return the folder on which private mounts are made.

    Raises:
        InfraError: it cannot be made, or another user has access to it.
    """
    folder = machine_folder("views")
    claim_folder(folder)
    return folder


def enter_private_namespace() -> Path:
    """Give this thread a mount namespace, and return an empty folder in memory that only it sees.

    Later mounts of the host still arrive; mounts of this thread stay here.
    """
    folder = views_folder()
    check(libc().unshare(NEW_MOUNT_NAMESPACE), Path("/"))
    cover(folder)
    return folder


def cover(folder: Path) -> None:
    """Mount an empty folder in memory over a folder, in a new mount namespace of this thread."""
    mount("none", Path("/"), "", _RECURSIVE | _SLAVE, "")
    mount("tmpfs", folder, "tmpfs", NO_SETUID, "mode=0700,size=1m")


def mount(source: str, target: str | Path, kind: str, flags: int, options: str = "") -> None:
    """Mount a file system.

    Args:
        source: device or name, as the file system expects it.
        target: folder or file to mount on.
        kind: name of the file system.
        flags: a sum of the constants above.
        options: of the file system.

    Raises:
        OSError: the kernel refuses.
    """
    done = libc().mount(
        source.encode(), os.fsencode(target), kind.encode(), flags, options.encode()
    )
    check(done, target)


def unmount(target: Path) -> None:
    """Detach a mount with all mounts below it.

    Raises:
        OSError: nothing is mounted there.
    """
    check(libc().umount2(os.fsencode(target), _DETACH), target)


@cache
def libc() -> ctypes.CDLL:
    """Return the C library."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mount.argtypes = (
        *(ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p),
        *(ctypes.c_ulong, ctypes.c_char_p),
    )
    return library


def check(result: int, target: str | Path) -> None:
    """Raise the OSError of a call of the C library that failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(target))
