"""Stops boxes that fill queues of the kernel which no control group counts.

What waits in a netlink socket, and on a TCP connection that no program has accepted, is memory of
the kernel that belongs to no group. A box can open thousands of such queues, of megabytes each. So
their size is read regularly, and a box above the limit ends as at its limit of memory.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from typing import Protocol

import structlog

from fumehood.core.errors import InfraError
from fumehood.engines.engine import ExitReason

_log = structlog.get_logger("fumehood.engines")

QUEUES_BYTES_MAX = 64 << 20
"""Far more than programs leave unread: a listing of network addresses has some kilobytes."""
INTERVAL_S = 0.25
"""Between two checks. A box fills some dozens of megabytes in this time, and more on a busy
machine."""
PAUSE_PER_LOOK = 50
"""With many boxes: pause this many times as long as a look takes."""
_CONNECTION_BYTES = 4096
"""Memory of an unaccepted connection itself."""
_OVERHEAD = 2
"""Memory of a queue for each byte in it, at most. Measured with pieces of 1 to 65,536 bytes."""
_NETLINK_RMEM, _TCP_QUEUES, _TCP_INODE = 4, 4, 9
"""Columns of /proc/PID/net/netlink and /proc/PID/net/tcp, from 0. Source: proc(5)."""
_UNACCEPTED = b"0"
"""Inode of a connection that no program has accepted."""


class WatchedBox(Protocol):
    """What the watch needs of a box."""

    @property
    def name(self) -> str:
        """Name for messages."""

    def host_pid(self) -> int | None:
        """Return the process ID of a process of the box; None if there is none."""

    def kill(self, reason: ExitReason = ExitReason.KILLED) -> None:
        """Stop everything in the box at once, for a reason."""


@dataclass(slots=True, eq=False)
class _Watched:
    box: WatchedBox
    pid: int | None = None
    namespace: str = ""
    """Network namespace of the process when it was first seen."""


class QueueWatch:
    """Looks at the queues of boxes until they end. Its thread ends when no box is left.

    Boxes whose process this program may not examine are not watched, nor those of a daemon on
    another machine.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._boxes: list[_Watched] = []
        self._is_looking = False

    def add(self, box: WatchedBox) -> None:
        """Watch a started box."""
        with self._lock:
            self._boxes.append(_Watched(box))
            if not self._is_looking:
                self._is_looking = True
                Thread(target=self._look, name="queue-watch", daemon=True).start()

    def _look(self) -> None:
        own = _namespace(os.getpid())
        while True:
            with self._lock:
                boxes = tuple(self._boxes)
                self._is_looking = bool(boxes)
            if not boxes:
                return
            started = time.monotonic()
            ended = [watched for watched in boxes if not _may_grow(watched, own)]
            with self._lock:
                self._boxes = [one for one in self._boxes if one not in ended]
            time.sleep(max(INTERVAL_S, PAUSE_PER_LOOK * (time.monotonic() - started)))


def _may_grow(watched: _Watched, own: str) -> bool:
    """Kill a box above the limit; return False if it need not be looked at again."""
    try:
        return _is_within_limit(watched, own)
    except InfraError:  # The daemon does not answer, or the box is being removed.
        return True


def _is_within_limit(watched: _Watched, own: str) -> bool:
    if watched.pid is None:
        watched.pid = watched.box.host_pid()
        if watched.pid is None:
            return False
        watched.namespace = _namespace(watched.pid)
    # The kernel gives the number of an ended process to another one.
    if watched.namespace in ("", own) or _namespace(watched.pid) != watched.namespace:
        return False
    queued = queued_bytes(watched.pid)
    if queued <= QUEUES_BYTES_MAX:
        return True
    _log.warning(
        "a box was killed because it filled queues of the kernel",
        box=watched.box.name,
        queued_bytes=queued,
        limit_bytes=QUEUES_BYTES_MAX,
    )
    watched.box.kill(ExitReason.OUT_OF_MEMORY)
    return False


def queued_bytes(pid: int) -> int:
    """Return the memory of the queues, at most, in the network namespace of a process; 0 if it has
    ended."""
    folder = Path(f"/proc/{pid}/net")
    total = sum(int(fields[_NETLINK_RMEM]) for fields in _rows(folder / "netlink"))
    for name in ("tcp", "tcp6"):
        for fields in _rows(folder / name):
            if fields[_TCP_INODE] == _UNACCEPTED:
                _, _, received = fields[_TCP_QUEUES].partition(b":")
                total += _CONNECTION_BYTES + _OVERHEAD * int(received, 16)
    return total


def _rows(file: Path) -> list[list[bytes]]:
    """Return the fields of the lines after the first one; nothing if the file is gone."""
    try:
        return [line.split() for line in file.read_bytes().splitlines()[1:]]
    except OSError:
        return []


def _namespace(pid: int) -> str:
    """Return the name of a process's network namespace; empty if it cannot be read."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""
