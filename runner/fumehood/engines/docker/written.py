"""Measures what a container wrote on the disk of the host.

The daemon counts neither deleted files that a program holds open nor empty files, and it cannot
list paths that are too long.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from fumehood.core.errors import InfraError
from fumehood.engines.engine import TooLarge

INODE_BYTES = 1024
"""Counted for each file and folder, because a file system has a limited number of them."""
PATHS_MAX = 1 << 20
"""Files and folders that a workspace can have changed, so that comparing them ends."""
NAMES_BYTES_MAX = 64 << 20
"""Length of these paths together, which engines and the daemon keep in memory."""
_BLOCK_BYTES = 512
"""Unit of st_blocks; see stat(2)."""


class ListedPaths:
    """Counts changed paths, so that a list of them does not use up the memory of the host."""

    def __init__(self) -> None:
        self._paths = self._names_bytes = 0

    def add(self, path: str) -> None:
        """Count a path.

        Raises:
            TooLarge: there are more than :data:`PATHS_MAX`, or they are longer than
                :data:`NAMES_BYTES_MAX`.
        """
        self._paths += 1
        self._names_bytes += len(path)
        if self._paths > PATHS_MAX or self._names_bytes > NAMES_BYTES_MAX:
            raise TooLarge(
                f"the workspace changed more than {PATHS_MAX} paths, or paths of more than "
                f"{NAMES_BYTES_MAX >> 20} MiB"
            )


def require_short_list(folder: Path) -> None:
    """Check that the paths below a folder can be listed.

    Raises:
        TooLarge: see :class:`ListedPaths`.
    """
    top, listed, folders = len(str(folder)), ListedPaths(), [str(folder)]
    # Without recursion, because folders can be deep.
    while folders:
        # The daemon refuses paths that are too long here.
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                listed.add(entry.path[top:])
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)


def used_bytes(folder: Path) -> int:
    """Return the allocated size of all files below a folder, with :data:`INODE_BYTES` for each.

    Raises:
        InfraError: the folder cannot be read.
    """
    # These programs change folders, so no path is too long for them.
    return _du(folder, "--block-size=1") + INODE_BYTES * _du(folder, "--inodes")


def deleted_bytes(pid: int, device: int | None = None) -> int:
    """Return the allocated size of the deleted files that are open or mapped in a container.

    Args:
        pid: of a process of the container, on the host.
        device: on which such files are; None for that of the root of the container.
    """
    sizes: dict[int, int] = {}
    with suppress(OSError):
        device = device or os.stat(f"/proc/{pid}/root").st_dev
        for process in _processes_beside(pid):
            for folder in ("fd", "map_files"):
                for path in _entries(f"/proc/{process}/{folder}"):
                    with suppress(OSError):
                        facts = os.stat(path)
                        if (
                            facts.st_nlink == 0
                            and facts.st_dev == device
                            and stat.S_ISREG(facts.st_mode)
                        ):
                            sizes[facts.st_ino] = facts.st_blocks * _BLOCK_BYTES
    return sum(sizes.values())


def _processes_beside(pid: int) -> Iterator[str]:
    """Yield the processes of a process namespace; a container cannot make another one."""
    namespace = os.stat(f"/proc/{pid}/ns/pid").st_ino
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            if os.stat(f"/proc/{name}/ns/pid").st_ino == namespace:
                yield name


def _entries(folder: str) -> list[str]:
    try:
        return [f"{folder}/{name}" for name in os.listdir(folder)]
    except OSError:  # The process has ended.
        return []


def _du(folder: Path, unit: str) -> int:
    # It also reports files that disappear meanwhile, with the sum of the others.
    listed = subprocess.run(["du", "-s", "-x", unit, str(folder)], capture_output=True, check=False)
    size = listed.stdout.partition(b"\t")[0]
    if not size.isdigit():
        raise InfraError(
            f"cannot measure {folder}: {listed.stderr.decode(errors='replace')[-200:]}"
        )
    return int(size)
