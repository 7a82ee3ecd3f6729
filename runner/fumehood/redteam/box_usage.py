"""Measures the processes of a box and their usage from the host, once or while the box runs.

It reads /proc and the control groups. The input is the ID of one process. If it has a separate
control group, the group is the box, including memory that belongs to no process. Otherwise the box
consists of the process and its descendants.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from fumehood.engines.engine import Box, BoxSpec, BoxStarter
from fumehood.engines.ownership import process_stat

_PROC = Path("/proc")
_GROUPS = Path("/sys/fs/cgroup")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_STATE, _PARENT, _USER_TICKS, _CHILD_SYSTEM_TICKS, _THREADS, _START = 0, 1, 11, 14, 17, 19
"""Fields of /proc/PID/stat after the name, counted from 0. Source: proc(5)."""

_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of a box at one moment."""

    tasks: int
    """Processes and threads."""
    memory_bytes: int
    cpu_ms: int
    """Since its start, including ended processes."""
    members: frozenset[tuple[int, int]]
    """Process ID and start time of each process."""


def measure(pid: int) -> Usage | None:
    """Return the usage of the box of process ``pid``; None if the process is gone."""
    groups = {
        name: folder
        for name, folder in _groups_of(pid).items()
        if folder != _groups_of(os.getpid())[name]
    }
    if "pids" in groups or "" in groups:
        return _measure_group(groups)
    return _measure_process_tree(pid)


def alive(members: Iterable[tuple[int, int]]) -> list[int]:
    """Return the IDs of the processes that still run, without zombies and reused IDs."""
    return [pid for pid, started in members if _runs(process_stat(pid), started)]


def open_descriptors(pid: int) -> int:
    """Return the number of open files of a process; 0 if it is gone."""
    try:
        return len(os.listdir(_PROC / str(pid) / "fd"))
    except _GONE:
        return 0


def _groups_of(pid: int) -> dict[str, Path]:
    """Return the folder of each controller, version 2 under the empty name."""
    folders: dict[str, Path] = {}
    with suppress(*_GONE):
        for line in (_PROC / str(pid) / "cgroup").read_text("utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            for name in controllers.split(","):
                top = _GROUPS / name if name else _GROUPS
                folders[name] = top / path.lstrip("/")
    return folders


def _measure_group(groups: dict[str, Path]) -> Usage | None:
    folder = groups.get("pids") or groups[""]
    try:
        files = [*folder.rglob("cgroup.procs")]
    except OSError:  # A group was removed meanwhile.
        return None
    pids = {int(word) for file in files for word in _read(file).split()}
    members = [(pid, stat) for pid in pids if (stat := process_stat(pid))]
    if not members:
        return None
    return Usage(
        sum(int(stat[_THREADS]) for _, stat in members),
        _number(groups, "memory", "memory.usage_in_bytes", "memory.current"),
        _cpu_ms(groups),
        frozenset((pid, int(stat[_START])) for pid, stat in members),
    )


def _cpu_ms(groups: dict[str, Path]) -> int:
    if "cpuacct" in groups:
        return int(_read(groups["cpuacct"] / "cpuacct.usage") or 0) // 1_000_000
    lines = dict(line.split() for line in _read(groups[""] / "cpu.stat").splitlines())
    return int(lines.get("usage_usec", 0)) // 1000


def _number(groups: dict[str, Path], controller: str, file: str, file_2: str) -> int:
    if controller in groups:
        return int(_read(groups[controller] / file) or 0)
    return int(_read(groups[""] / file_2) or 0) if "" in groups else 0


def _measure_process_tree(pid: int) -> Usage | None:
    processes = {member: stat for member in _process_tree(pid) if (stat := process_stat(member))}
    if not processes:
        return None
    ticks = sum(
        int(value)
        for stat in processes.values()
        for value in stat[_USER_TICKS : _CHILD_SYSTEM_TICKS + 1]
    )
    return Usage(
        sum(int(stat[_THREADS]) for stat in processes.values()),
        sum(_own_memory(member) for member in processes) + _tmp_bytes(processes),
        ticks * 1000 // _TICKS_PER_S,
        frozenset((member, int(stat[_START])) for member, stat in processes.items()),
    )


def _process_tree(pid: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir(_PROC):
        if name.isdecimal() and (stat := process_stat(int(name))):
            children.setdefault(int(stat[_PARENT]), []).append(int(name))
    waiting = [pid]
    while waiting:
        member = waiting.pop()
        yield member
        waiting += children.get(member, [])


def _own_memory(pid: int) -> int:
    """Return the memory of a process without mapped files."""
    fields = dict(
        line.split(":", 1)
        for line in _read(_PROC / str(pid) / "status").splitlines()
        if ":" in line
    )
    return sum(int(fields.get(name, "0").split()[0]) << 10 for name in ("RssAnon", "RssShmem"))


def _tmp_bytes(processes: Iterable[int]) -> int:
    """Return the size of the files in the box's /tmp; 0 if it is on a disk, as in a workspace."""
    for pid in sorted(processes, reverse=True):
        with suppress(*_GONE):
            if not _is_in_memory(pid, "/tmp"):
                continue
            inside = os.statvfs(_PROC / str(pid) / "root/tmp")
            if inside.f_fsid != os.statvfs("/tmp").f_fsid:
                return (inside.f_blocks - inside.f_bfree) * inside.f_frsize
    return 0


def _is_in_memory(pid: int, folder: str) -> bool:
    """Return whether a folder is a tmpfs, as a process sees it."""
    mounts = (line.split() for line in _read(_PROC / str(pid) / "mounts").splitlines())
    return any(mount[1:3] == [folder, "tmpfs"] for mount in mounts)


def _runs(stat: list[str], started: int) -> bool:
    return bool(stat) and stat[_STATE] not in "ZX" and int(stat[_START]) == started


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except (*_GONE, OSError):
        return ""


INTERVAL_S = 0.05
"""Time between two measurements."""


class Watch:
    """The peak usage of one box, and its processes."""

    def __init__(self, box: Box) -> None:
        """Start measuring, until ``end`` is called or the first process of the box has ended."""
        self.tasks_max = 0
        self.memory_bytes_max = 0
        self.cpu_ms = 0
        self.members: set[tuple[int, int]] = set()
        """Process ID and start time of every process that was seen in the box."""
        self.measurements = 0
        """Number of successful measurements."""
        self._box = box
        self._started = time.monotonic()
        self._last_seen = self._started
        self._stop = Event()
        self._thread = Thread(target=self._measure, name="box-watch", daemon=True)
        self._thread.start()

    @property
    def seconds(self) -> float:
        """Time from the start to the last successful measurement."""
        return self._last_seen - self._started

    def end(self) -> None:
        """Stop measuring."""
        self._stop.set()
        self._thread.join()

    def _measure(self) -> None:
        pid = self._box.host_pid()
        if pid is None or not (stat := process_stat(pid)):
            return
        started = int(stat[_START])
        while _runs(process_stat(pid), started) and not self._stop.wait(INTERVAL_S):
            usage = measure(pid)
            if usage is not None:
                self._record(usage)

    def _record(self, usage: Usage) -> None:
        self.measurements += 1
        self._last_seen = time.monotonic()
        self.tasks_max = max(self.tasks_max, usage.tasks)
        self.memory_bytes_max = max(self.memory_bytes_max, usage.memory_bytes)
        self.cpu_ms = max(self.cpu_ms, usage.cpu_ms)
        self.members |= usage.members


class WatchedEngine:
    """Starts boxes of an engine, and measures the one that was started last."""

    def __init__(self, engine: BoxStarter) -> None:
        self._engine = engine
        self.watch: Watch | None = None
        """The measurement of the box that was started last."""

    def start(self, spec: BoxSpec) -> Box:
        """Start a box and its measurement."""
        box = self._engine.start(spec)
        self.watch = Watch(box)
        return box
