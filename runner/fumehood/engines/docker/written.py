"""Measures what a container wrote on the disk of the host.

The daemon counts neither deleted files that a program holds open nor empty files, and it cannot
list paths that are too long.
"""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from fumehood.core.errors import InfraError
from fumehood.engines.engine import INODE_BYTES, FreeSpace, TooLarge

PATHS_MAX = 1 << 20
"""Files and folders that a workspace can have changed, so that comparing them ends."""
NAMES_BYTES_MAX = 64 << 20
"""Length of these paths together, which engines and the daemon keep in memory."""
HELD_MAX = 50_000
"""Files that the programs of a workspace can hold open and mapped, so that measuring them ends. It
takes about a second."""
HIDDEN_BYTES_MAX = 64 << 20
"""By how much the free space of the disk may fall without an explanation before a box is paused."""
_libc = ctypes.CDLL(None)
_KCMP = {"x86_64": 312, "aarch64": 272}.get(platform.machine(), -1)
"""Number of the system call kcmp. Source: Linux, include/uapi/asm-generic/unistd.h."""
_FILES, _FOLDERS = 2, 3
"""What threads can share: KCMP_FILES and KCMP_FS. Source: kcmp(2)."""
_LINKS = ("exe", "cwd", "root")
"""Links in /proc to the program, the working folder and the root of a thread; see proc(5)."""
_BLOCK_BYTES = 512
"""Unit of st_blocks; see stat(2)."""


class Unsettled(InfraError):
    """Files moved while they were measured."""


class DiskMeter:
    """Measures what a running box wrote, and pauses the box if it may have hidden files.

    A program can move folders during a measurement, so that they are not found. Then the free space
    of the disk falls by more than what was found. If another program of the host is the reason, a
    short pause is the only consequence.
    """

    def __init__(self, paused: Callable[[], AbstractContextManager[object]]) -> None:
        """Create it.

        Args:
            paused: returns a context in which no program of the box runs.
        """
        self._paused = paused
        self._last: tuple[int, int] | None = None
        """What the box had written, and the free space, when it was last paused."""

    def measure(self, written: Callable[[], int], free: Callable[[], int]) -> int:
        """Return the size of what the box wrote.

        Args:
            written: measures the files of the box; it may miss some while the box runs.
            free: returns the free space of the disk.

        Raises:
            InfraError: the box cannot be paused, or its files cannot be measured.
        """
        if self._last is not None:
            with suppress(Unsettled):
                size_bytes = written()
                grown_bytes = size_bytes - self._last[0]
                if self._last[1] - free() <= grown_bytes + HIDDEN_BYTES_MAX:
                    return size_bytes
        with self._paused():
            self._last = written(), free()
        return self._last[0]


def free_space(folder: Path) -> FreeSpace:
    """Return what is free on the disk of a folder."""
    facts = os.statvfs(folder)
    return FreeSpace(facts.f_bfree * facts.f_frsize, facts.f_ffree)


@dataclass(frozen=True, slots=True)
class ContainerFiles:
    """Where the files of a container of Docker are on the host."""

    upper: Path
    """Folder of the files that differ from the image."""
    merged: Path
    """Where the daemon mounts the root of the container."""
    network_files: tuple[Path, ...]
    """Files such as /etc/hosts, which the daemon mounts into the container from another folder."""

    def written_bytes(self, pid: int, bytes_max: int | None) -> int:
        """Return the size of what the container wrote.

        Args:
            pid: one of its processes.
            bytes_max: see :func:`used_bytes`.

        Raises:
            Unsettled: files moved meanwhile, or the upper folder cannot be read.
            TooLarge: the container holds more than :data:`HELD_MAX` files.
        """
        # With gVisor, the root of a process on the host is not that of the container.
        device = os.stat(self.merged).st_dev if os.path.ismount(self.merged) else None
        # Deleted files first, because a program can delay this measurement and write meanwhile.
        deleted = deleted_bytes(pid, device)
        beside = sum(
            path.stat().st_blocks * _BLOCK_BYTES for path in self.network_files if path.is_file()
        )
        return deleted + beside + used_bytes(self.upper, bytes_max)


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
        self._names_bytes += len(os.fsencode(path))
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


def used_bytes(folder: Path, bytes_max: int | None = None) -> int:
    """Return the allocated size of all files below a folder, with :data:`INODE_BYTES` for each.

    Args:
        folder: in which programs may work meanwhile.
        bytes_max: stop when the size so far exceeds it. A program can move a folder so that it is
            found again and again, and the measurement would not end.

    Raises:
        Unsettled: files moved meanwhile, or the folder cannot be read.
    """
    # This program changes folders, so no path is too long for it.
    command = ["find", str(folder), "-xdev", "(", "-links", "1", "-o", "-type", "d", ")"]
    command += ["-printf", "%b\n", "-o", "-printf", "%b %i\n"]
    size_bytes, linked, is_over = 0, set[bytes](), False
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as listing:
        assert listing.stdout is not None
        for line in listing.stdout:
            blocks, _, inode = line.partition(b" ")
            if inode in linked:
                continue
            if inode:
                linked.add(inode)
            size_bytes += int(blocks) * _BLOCK_BYTES + INODE_BYTES
            is_over = bytes_max is not None and size_bytes > bytes_max
            if is_over:
                listing.kill()
                break
    if listing.returncode and not is_over:
        raise Unsettled(f"cannot measure all files below {folder}")
    return size_bytes


def deleted_bytes(pid: int, device: int | None = None) -> int:
    """Return the allocated size of the deleted files that are open or mapped in a container.

    Args:
        pid: of a process of the container, on the host.
        device: on which such files are; None for that of the root of the container.

    Raises:
        TooLarge: the container holds more than :data:`HELD_MAX` files.
    """
    sizes: dict[int, int] = {}
    with suppress(OSError):
        device = device or os.stat(f"/proc/{pid}/root").st_dev
        for path in _held_files(pid):
            with suppress(OSError):
                facts = os.stat(path)
                if facts.st_nlink == 0 and facts.st_dev == device:
                    sizes[facts.st_ino] = facts.st_blocks * _BLOCK_BYTES
    return sum(sizes.values())


def _held_files(pid: int) -> Iterator[str]:
    """Yield the paths in /proc of what the threads of a container hold: open, mapped and executed
    files, and working folders."""
    held = 0
    for threads in _processes_beside(pid):
        # Threads share their memory, but each can have its own descriptors and folders. The first
        # thread of a process can have ended before the others, and then shows nothing.
        mapped = next(filter(None, (_entries(f"{one}/map_files") for one in threads)), [])
        opened = (path for one in _with_own(_FILES, threads) for path in _entries(f"{one}/fd"))
        linked = (f"{one}/{name}" for one in _with_own(_FOLDERS, threads) for name in _LINKS)
        for path in chain(mapped, opened, linked):
            held += 1
            if held > HELD_MAX:
                raise TooLarge(f"the workspace holds more than {HELD_MAX} files open or mapped")
            yield path


def _with_own(kind: int, threads: Sequence[str]) -> Iterator[str]:
    """Yield the threads that do not share something with the one that was yielded before.

    Args:
        kind: what they share; see kcmp(2).
        threads: their folders in /proc.
    """
    last = None
    for one in threads:
        number = int(one.rpartition("/")[2])
        # Nothing is known of threads that have ended, or if this process may not compare them.
        if last is None or _libc.syscall(_KCMP, last, number, kind, 0, 0) != 0:
            last = number
            yield one


def _processes_beside(pid: int) -> Iterator[list[str]]:
    """Yield the folders in /proc of the threads of each process of a container.

    The processes have the process namespace of ``pid``, or its control group: the processes of
    gVisor are in other namespaces, such as that of this process.
    """
    namespace, group = _place(f"/proc/{pid}")
    if group and namespace == _place("/proc/self")[0]:
        namespace = None
    for name in filter(str.isdecimal, os.listdir("/proc")):
        threads = _entries(f"/proc/{name}/task")
        for thread in threads:
            place = _place(thread)
            if place[0] is None:
                continue
            if place[0] == namespace or (group and place[1] == group):
                yield threads
            break


def _place(folder: str) -> tuple[int | None, str]:
    """Return the process namespace of a thread, None if it has ended, and the control group that
    limits its processes; empty if that is the group of the machine."""
    try:
        groups = Path(folder, "cgroup").read_text("ascii", errors="replace").splitlines()
        namespace = os.stat(f"{folder}/ns/pid").st_ino
    except OSError:
        return None, ""
    # Versions 1 and 2; see cgroups(7).
    limiting = (group for group in groups if ":pids" in group or group.startswith("0::"))
    return namespace, "".join(group for group in limiting if not group.endswith(":/"))


def _entries(folder: str) -> list[str]:
    try:
        return [f"{folder}/{name}" for name in os.listdir(folder)]
    except OSError:  # The process has ended.
        return []
