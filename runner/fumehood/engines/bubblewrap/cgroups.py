"""Control groups, which limit the memory, the processor time and the processes of boxes.

Root makes them, and an ordinary user in a group of version 2 that systemd has delegated. With
version 1, each controller has a separate folder; with version 2, all share one. The name of a group
contains the user of its box, so the record that reserves the user also identifies the group of a
killed run.

Source: Linux, admin-guide/cgroup-v1 and admin-guide/cgroup-v2; https://systemd.io/CGROUP_DELEGATION.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

from fumehood.core.errors import InfraError
from fumehood.engines.engine import CPU_SHARES, ExitReason, Limits, NotEnded

PREFIX = "fumehood-"
"""A group's name is this prefix and the user of the box. Groups have no common parent, because all
boxes together would then get the processor time of one process of the host."""
NEEDED = ("memory", "cpu", "pids")
FREEZER = "freezer"
"""Controller of version 1 that stops processes; version 2 needs none."""
HELPERS = 3
"""Number of bubblewrap's processes in a group, in addition to those of the agent."""
SOCKET_MEMORY = "memory.kmem.tcp.limit_in_bytes"
"""File of version 1 with the limit for the memory of sockets, which is not part of the memory."""
DISK_BYTES_PER_S = 256 << 20
"""Read from each disk. Most of what a box reads is in memory, and only workspaces write to a
disk."""
_DISK_READS = "blkio.throttle.read_bps_device"
_BLOCK = Path("/sys/block")
_CPU_PERIOD_US = 100_000
_CPU_WEIGHT = CPU_SHARES * 100 // 1024
"""The weight in the unit of version 2, where a group has 100 by default."""
KILLED = 137
"""Exit status of a process that SIGKILL ended: 128 + 9."""
_END_TIMEOUT_S = 10.0
"""Time from SIGKILL until every process of a group is gone."""
_POLL_S = 0.001
_ATTEMPTS_TO_PAUSE = 50
_ATTEMPTS_TO_MOVE = 10
_MOUNTS = Path("/proc/self/mounts")
_OWN_GROUPS = Path("/proc/self/cgroup")
_REST = f"{PREFIX}host"
"""Group of the processes of a delegated group: the kernel permits processes only in groups without
limited children."""


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """The mounted hierarchies that limit boxes."""

    tops: Mapping[str, Path]
    """Mount point of each controller; with version 2 only that of ``""``."""

    @property
    def is_unified(self) -> bool:
        """Whether it is version 2."""
        return "" in self.tops


@cache
def hierarchies() -> Hierarchies | None:
    """Return the hierarchies in which this process may make groups; None if it may not."""
    # Other systems have no such file, and kernels without control groups not the second one.
    mounts = _read(_MOUNTS)
    if os.geteuid() != 0:
        delegated = find_delegated(mounts, _read(_OWN_GROUPS))
        return delegated if delegated is not None and takes_limits(delegated) else None
    existing = find_hierarchies(mounts)
    writable = existing is not None and all(
        os.access(top, os.W_OK) for top in existing.tops.values()
    )
    return existing if writable else None


def unenforced() -> tuple[str, ...]:
    """Return the fields of ``Limits`` that need control groups, if this process cannot make any."""
    return ("memory_bytes", "cpus") if hierarchies() is None else ()


def find_hierarchies(mounts: str) -> Hierarchies | None:
    """Return the hierarchies of a /proc/self/mounts; None if a needed controller is missing."""
    tops: dict[str, Path] = {}
    for line in mounts.splitlines():
        _, mount_point, kind, options, *_ = line.split()
        if kind == "cgroup":
            known = set(options.split(",")) & {*NEEDED, "cpuacct", "blkio", FREEZER}
            tops.update(dict.fromkeys(known, Path(mount_point)))
        elif kind == "cgroup2" and _has_needed(Path(mount_point)):
            return Hierarchies({"": Path(mount_point)})
    return Hierarchies(tops) if set(NEEDED) <= set(tops) else None


def find_delegated(mounts: str, own_groups: str) -> Hierarchies | None:
    """Return the group of version 2 of this process if it may make groups with limits in it.

    Args:
        mounts: a /proc/self/mounts.
        own_groups: a /proc/self/cgroup.
    """
    tops = [line.split()[1] for line in mounts.splitlines() if line.split()[2] == "cgroup2"]
    paths = [line[3:] for line in own_groups.splitlines() if line.startswith("0::")]
    if not tops or not paths:
        return None
    group = Path(tops[0], paths[0].lstrip("/"))
    if group.name == _REST:  # An earlier command moved this process.
        group = group.parent
    files = (group, group / "cgroup.procs", group / "cgroup.subtree_control")
    is_delegated = all(os.access(file, os.W_OK) for file in files)
    return Hierarchies({"": group}) if is_delegated and _has_needed(group) else None


def takes_limits(delegated: Hierarchies) -> bool:
    """Return whether the children of a delegated group can be limited, after enabling the limits.

    The kernel refuses while a process stays in the group itself, such as one of another program
    that cannot be moved. Boxes then run without these limits.
    """
    try:
        for top in delegated.tops.values():
            _enable(top)
    except OSError:
        return False
    return True


def _has_needed(top: Path) -> bool:
    try:
        return set(NEEDED) <= set((top / "cgroup.controllers").read_text("ascii").split())
    except OSError:
        return False


class BoxGroup:
    """The control group of one box."""

    def __init__(self, mounted: Hierarchies, user: int, *, can_pause: bool = False) -> None:
        """Name the group, without side effects; ``can_pause`` permits :meth:`pause`."""
        self._is_unified = mounted.is_unified
        self._folders = {
            name: top / f"{PREFIX}{user}"
            for name, top in mounted.tops.items()
            if can_pause or name != FREEZER
        }

    def make(self, limits: Limits) -> None:
        """Make the group.

        Raises:
            InfraError: the kernel refuses.
        """
        try:
            for folder in self._folders.values():
                if self._is_unified:
                    _enable(folder.parent)
                # A group of an earlier box with this user would have its limits and its usage.
                with suppress(FileNotFoundError):
                    folder.rmdir()
                folder.mkdir(mode=0o755)
            for file, value in self._settings(limits):
                file.write_text(value, "ascii")
        except OSError as error:
            self.remove()
            raise InfraError(
                f"cannot make the control group of a box: {error.filename}: {error.strerror}"
            ) from error

    def entrances(self) -> list[Path]:
        """Return the files through which a process enters the group, by writing 0."""
        return [folder / "cgroup.procs" for folder in dict.fromkeys(self._folders.values())]

    def add(self, pid: int) -> None:
        """Move a process into the group; has no effect if it has ended.

        Raises:
            InfraError: the kernel refuses.
        """
        try:
            with suppress(ProcessLookupError):
                for folder in set(self._folders.values()):
                    (folder / "cgroup.procs").write_text(str(pid), "ascii")
        except OSError as error:
            raise InfraError(f"cannot limit a box: {error.strerror}") from error

    def pause(self) -> None:
        """Stop all processes of the group, and wait until they are.

        Raises:
            InfraError: the kernel refuses, or a process does not stop.
        """
        deadline = time.monotonic() + _END_TIMEOUT_S
        for attempt in count(1):
            self._set_paused("1" if self._is_unified else "FROZEN")
            if self._is_paused():
                return
            if time.monotonic() > deadline:
                raise InfraError("a process of a box does not stop")
            if attempt % _ATTEMPTS_TO_PAUSE == 0 and not self._is_unified:
                # A thread that replaces its program waits for its other threads,
                # which cannot end while they are paused.
                self.resume()
            time.sleep(_POLL_S)

    def resume(self) -> None:
        """Continue all processes of the group; has no effect on a group that is not paused."""
        with suppress(InfraError):
            self._set_paused("0" if self._is_unified else "THAWED")

    def _set_paused(self, value: str) -> None:
        name = "cgroup.freeze" if self._is_unified else "freezer.state"
        try:
            (self._pausing_folder() / name).write_text(value, "ascii")
        except OSError as error:
            raise InfraError(f"cannot pause a box: {error.strerror}") from error

    def _is_paused(self) -> bool:
        if self._is_unified:
            return "frozen 1" in _read(self._pausing_folder() / "cgroup.events")
        return _read(self._pausing_folder() / "freezer.state").strip() == "FROZEN"

    def _pausing_folder(self) -> Path:
        folder = self._folders.get("" if self._is_unified else FREEZER)
        if folder is None:
            raise InfraError(
                "no control group here can pause a box: mount the controller freezer of version 1, "
                "or use --engine docker"
            )
        return folder

    def ran_out_of_memory(self) -> bool:
        """Return whether the kernel killed a process of the group at the memory limit."""
        file = "memory.events" if self._is_unified else "memory.oom_control"
        folder = self._folders.get("memory") or self._folders[""]
        counts = dict(line.split() for line in _read(folder / file).splitlines())
        return int(counts.get("oom_kill", 0)) > 0

    def require_removed(self) -> None:
        """Kill every process of the group and remove it.

        Raises:
            NotEnded: a process does not end.
        """
        if not self.remove():
            raise NotEnded("a process of a box does not end, although it was killed")

    def remove(self) -> bool:
        """Kill every process of the group and remove it; return whether it is gone."""
        deadline = time.monotonic() + _END_TIMEOUT_S
        self.resume()  # With version 1, a paused process does not end.
        for folder in set(self._folders.values()):
            while folder.exists() and time.monotonic() < deadline:
                for pid in _read(folder / "cgroup.procs").split():
                    with suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                # The kernel refuses while a killed process is ending.
                with suppress(OSError):
                    folder.rmdir()
                    break
                time.sleep(_POLL_S)
        return not any(folder.exists() for folder in self._folders.values())

    def _settings(self, limits: Limits) -> list[tuple[Path, str]]:
        tasks = str(limits.processes + HELPERS)
        quota_us = round(limits.cpus * _CPU_PERIOD_US)
        if self._is_unified:
            folder = self._folders[""]
            return _existing(
                (folder / "memory.max", str(limits.memory_bytes)),
                (folder / "memory.swap.max", "0"),
                (folder / "cpu.max", f"{quota_us} {_CPU_PERIOD_US}"),
                (folder / "cpu.weight", str(_CPU_WEIGHT)),
                (folder / "pids.max", tasks),
                *((folder / "io.max", f"{disk} rbps={DISK_BYTES_PER_S}") for disk in _disks()),
            )
        memory, cpu = self._folders["memory"], self._folders["cpu"]
        return _existing(
            (memory / "memory.limit_in_bytes", str(limits.memory_bytes)),
            (memory / "memory.memsw.limit_in_bytes", str(limits.memory_bytes)),
            (memory / SOCKET_MEMORY, str(socket_bytes(limits))),
            (cpu / "cpu.cfs_period_us", str(_CPU_PERIOD_US)),
            (cpu / "cpu.cfs_quota_us", str(quota_us)),
            (cpu / "cpu.shares", str(CPU_SHARES)),
            (self._folders["pids"] / "pids.max", tasks),
            *(
                (self._folders["blkio"] / _DISK_READS, f"{disk} {DISK_BYTES_PER_S}")
                for disk in (_disks() if "blkio" in self._folders else ())
            ),
        )


def socket_bytes(limits: Limits) -> int:
    """Return the memory that the sockets of a box may use in addition to its memory."""
    return limits.memory_bytes // 8


def remove_group(user: int) -> bool:
    """Remove the group of a box whose owner is gone; return False if a process in it does not
    end."""
    writable_hierarchies = hierarchies()
    return (
        writable_hierarchies is None
        or BoxGroup(writable_hierarchies, user, can_pause=True).remove()
    )


def remove_unnamed_groups(reserved: Callable[[], Collection[int]]) -> None:
    """Remove the empty groups of boxes whose users are not reserved any more.

    ``reserved`` is called after the groups have been listed, because a group is made after its user
    was reserved.
    """
    groups = [folder for top in _every_top() for folder in top.glob(f"{PREFIX}[0-9]*")]
    users = reserved()
    for folder in groups:
        if int(folder.name.removeprefix(PREFIX)) not in users:
            with suppress(OSError):  # A process is in it, or another command removed it.
                folder.rmdir()


def remove_empty_groups(user: int) -> None:
    """Remove the groups of a box that a runtime made for controllers without a limit."""
    for top in _every_top():
        with suppress(OSError):
            (top / f"{PREFIX}{user}").rmdir()


def _every_top() -> list[Path]:
    """Return the mount point of every hierarchy, or the group, in which this process may make
    groups."""
    usable = hierarchies()
    if usable is None:
        return []
    if os.geteuid() != 0:
        return list(usable.tops.values())
    mounts = [line.split() for line in _read(_MOUNTS).splitlines()]
    return [Path(mount[1]) for mount in mounts if mount[2] in ("cgroup", "cgroup2")]


@cache
def _disks() -> tuple[str, ...]:
    """Return major and minor number of each disk of the machine."""
    disks = sorted(disk for disk in _BLOCK.glob("*") if (disk / "device").exists())
    return tuple(_read(disk / "dev").strip() for disk in disks)


_OPTIONAL = (
    *("memory.swap.max", "memory.memsw.limit_in_bytes", SOCKET_MEMORY),
    *("io.max", _DISK_READS),
)
"""Files that do not exist if the kernel does not account swap or sockets, or limits no disk."""


def _existing(*settings: tuple[Path, str]) -> list[tuple[Path, str]]:
    return [
        (file, value) for file, value in settings if file.name not in _OPTIONAL or file.exists()
    ]


def _enable(folder: Path) -> None:
    """Enable the controllers for the children of a version 2 group."""
    control = folder / "cgroup.subtree_control"
    has_io = "io" in _read(folder / "cgroup.controllers").split()
    wanted = (*NEEDED, "io") if has_io else NEEDED
    if not set(wanted) <= set(_read(control).split()):
        if os.geteuid() != 0:
            _move_processes(folder, folder / _REST)
        control.write_text(" ".join(f"+{name}" for name in wanted), "ascii")


def _move_processes(group: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for _ in range(_ATTEMPTS_TO_MOVE):  # A process can have made another one meanwhile.
        for pid in _read(group / "cgroup.procs").split():
            with suppress(ProcessLookupError):
                (target / "cgroup.procs").write_text(pid, "ascii")


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8", errors="replace")  # A mount can have any name.
    except OSError:
        return ""


def exit_reason(code: int, group: BoxGroup | None) -> ExitReason:
    """Return why a process of a box ended with an exit status; ``group`` is that of the box."""
    if code == KILLED and group is not None and group.ran_out_of_memory():
        return ExitReason.OUT_OF_MEMORY
    return ExitReason.EXITED
