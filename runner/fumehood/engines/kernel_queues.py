"""Stops boxes that fill queues of the kernel which no control group counts.

What waits in a netlink socket, and on a TCP connection that no program has accepted, is memory of
the kernel that belongs to no group. A box can open thousands of such queues, of megabytes each. So
their size is read regularly, and a box above the limit ends as at its limit of memory.
"""

from __future__ import annotations

import os
import re
import resource
import time
from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread
from typing import Protocol

from fumehood.core.errors import InfraError
from fumehood.engines.engine import ExitReason

QUEUES_BYTES_MAX = 64 << 20
"""Far more than programs leave unread: a listing of network addresses has some kilobytes."""
INTERVAL_S = 0.25
"""Between two checks. A box fills some dozens of megabytes in this time, and more on a busy
machine."""
PAUSE_PER_CHECK, PAUSE_S_MAX = 50, 2.0
"""With many boxes, a pause is this many times the processor time of a check, and at most this long.
Time in which the check waits for a processor or a daemon does not count, because boxes fill their
queues in it."""
_CONNECTION_BYTES = 4096
"""Memory of an unaccepted connection itself."""
_OVERHEAD = 2
"""Memory of a queue for each byte in it, at most. Measured with pieces of 1 to 65,536 bytes."""
_UNACCEPTED = re.compile(
    rb"^ *\d+: (\w+:\w+) (\w+:\w+) (?:01|08) \w+:(\w+) \S+ \w+ +\d+ +\d+ 0 \d+ (\w+)",
    re.MULTILINE,
)
"""A line of /proc/PID/net/tcp of an established or half-closed connection without an inode, with
its addresses, the bytes in its queue, and its address in the kernel. Source: proc(5)."""
_LISTENING = re.compile(rb"^ *\d+: (\w+:\w+) \S+ 0A \w+:(\w+) ", re.MULTILINE)
"""A line of a socket that listens, with its address and the number of unaccepted connections.
Source: linux/net/ipv4/tcp_ipv4.c, get_tcp4_sock."""
_UNLISTED_MAX = 4
"""Maximum number of unaccepted connections without a line whose data does not count: a program
accepts some while the lists are read, and clients reset a few."""
LOOKS = 8
"""Number of looks at a box above the limit. It is killed if it is above it at half of them. A
program that accepts many connections can seem to have unlisted ones, but not so often."""
_SOCKETS = re.compile(rb"^sockets: used (\d+)", re.MULTILINE)
"""Number of sockets of a network namespace, in /proc/PID/net/sockstat. It includes connections that
a client has reset."""
_PAGES = re.compile(rb"^TCP: .* mem (\d+)", re.MULTILINE)
"""Pages in the queues of all TCP connections of the machine, in /proc/PID/net/sockstat. Each
processor can have one more megabyte. Source: linux/net/sock.h, SK_MEMORY_PCPU_RESERVE."""
_NETLINK_RMEM = 4
"""Column of /proc/PID/net/netlink, from 0."""
_PAGE_BYTES = resource.getpagesize()
_START_TIME = 19
"""Field of /proc/PID/stat, from 0, after the name of the program. Source: proc(5), field 22."""


_Identity = tuple[bytes, ...]


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
    started: str = ""
    """When the process started: the kernel gives the number of an ended process to another one."""
    shared_ports: set[bytes] = field(default_factory=set)
    """See :func:`queued_bytes`. Kept, because a box can close one of the sockets for a look."""


class QueueWatch:
    """Checks the queues of boxes until they end. Its thread ends when no box is left.

    Boxes whose process this program may not examine are not watched, nor those of a daemon on
    another machine.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._boxes: list[_Watched] = []
        self._is_checking = False

    def add(self, box: WatchedBox) -> None:
        """Watch a started box."""
        with self._lock:
            self._boxes.append(_Watched(box))
            if not self._is_checking:
                Thread(target=self._check_all, name="queue-watch", daemon=True).start()
                self._is_checking = True

    def _check_all(self) -> None:
        own = _namespace(os.getpid())
        while True:
            with self._lock:
                boxes = tuple(self._boxes)
                self._is_checking = bool(boxes)
            if not boxes:
                return
            used_s = time.thread_time()
            ended = [watched for watched in boxes if not _runs_after_check(watched, own)]
            with self._lock:
                self._boxes = [one for one in self._boxes if one not in ended]
            pause_s = PAUSE_PER_CHECK * (time.thread_time() - used_s)
            time.sleep(min(max(INTERVAL_S, pause_s), PAUSE_S_MAX))


def _runs_after_check(watched: _Watched, own: str) -> bool:
    """Kill a box above the limit; return False if it need not be checked again."""
    try:
        return _check(watched, own)
    except InfraError:  # The daemon does not answer, or the box is being removed.
        return True
    except Exception as error:
        warn("queues of a box cannot be read", box=watched.box.name, error=repr(error))
        return True


def _check(watched: _Watched, own: str) -> bool:
    if watched.pid is None:
        watched.pid = watched.box.host_pid()
        watched.started = _start_time(watched.pid)
    if watched.pid is None or not watched.started or _start_time(watched.pid) != watched.started:
        return False
    # It may not have left the namespace of this program yet.
    if _namespace(watched.pid) in ("", own):
        return True
    looks = [_look(watched, watched.pid)]
    if looks[0] <= QUEUES_BYTES_MAX:
        return True
    looks += [_look(watched, watched.pid) for _ in range(LOOKS - 1)]
    # Not at all of them: an agent could make one look see nothing.
    if sum(look > QUEUES_BYTES_MAX for look in looks) < LOOKS / 2:
        return True
    warn(
        "a box was killed because it filled queues of the kernel",
        box=watched.box.name,
        queued_bytes=max(looks),
        limit_bytes=QUEUES_BYTES_MAX,
    )
    watched.box.kill(ExitReason.OUT_OF_MEMORY)
    return False


def _look(watched: _Watched, pid: int) -> int:
    return queued_bytes(pid, QUEUES_BYTES_MAX, watched.shared_ports)


def queued_bytes(pid: int, limit_bytes: int = 0, shared_ports: set[bytes] | None = None) -> int:
    """Return the memory of the queues, at most, in the network namespace of a process; 0 if it has
    ended.

    If clients have reset more than ``_UNLISTED_MAX`` connections, their data is estimated as that
    of all TCP connections of the machine.

    Args:
        pid: of the process.
        limit_bytes: if the queues cannot exceed it, a coarser bound is returned, because the lists
            of connections take milliseconds to read.
        shared_ports: on which several sockets listened at an earlier look at the same namespace;
            those of this look are added.
    """
    folder = Path(f"/proc/{pid}/net")
    netlink = _content(folder / "netlink").splitlines()[1:]
    total = sum(int(line.split()[_NETLINK_RMEM]) for line in netlink)
    numbers = _content(folder / "sockstat")
    sockets, pages = (sum(map(int, part.findall(numbers))) for part in (_SOCKETS, _PAGES))
    machine_bytes = _PAGE_BYTES * pages
    bound = total + _CONNECTION_BYTES * sockets + _OVERHEAD * machine_bytes
    if _PAGES.search(numbers) and bound <= limit_bytes:
        return bound
    unlisted, ports = 0, set[bytes]() if shared_ports is None else shared_ports
    for name in ("tcp", "tcp6"):
        earlier = _content(folder / name)
        before = {_identity(line) for line in _UNACCEPTED.findall(earlier)}
        table = _content(folder / name)
        connections = {_identity(line): line for line in _UNACCEPTED.findall(table)}
        # While connections come and go, the kernel lists some twice.
        unlisted += _unlisted((earlier, table), before, connections.keys(), ports)
        data_bytes = sum(int(queue, 16) for _, _, queue, _ in connections.values())
        total += _CONNECTION_BYTES * len(connections) + _OVERHEAD * data_bytes
        machine_bytes -= data_bytes
    if unlisted > _UNLISTED_MAX:
        # No file states their data, only that of all connections of the machine.
        total += max(machine_bytes, 0)
    return total + _CONNECTION_BYTES * unlisted


def _unlisted(
    tables: tuple[bytes, bytes],
    before: Set[_Identity],
    after: Set[_Identity],
    shared_ports: set[bytes],
) -> int:
    """Return the number of unaccepted connections that have no line.

    A client has reset them. The kernel keeps them, with their data, until the program accepts them.
    It lists the counts of a table first, and the connections some milliseconds later.

    If one socket listens on a port, all its listed connections are subtracted: a program accepts
    the oldest connection first, so none can leave while the socket keeps reset ones. Connections of
    several sockets can come and go, so only those that were listed before and after the count are
    subtracted.

    Args:
        tables: the content of /proc/PID/net/tcp or tcp6, read twice.
        before: unaccepted connections in the first table.
        after: those in the second one.
        shared_ports: see :func:`queued_bytes`.
    """
    for table in tables:
        sockets = Counter(_port(address) for address, _ in _LISTENING.findall(table))
        shared_ports.update(port for port, number in sockets.items() if number > 1)
    waiting = Counter[bytes]()
    for address, count in _LISTENING.findall(tables[1]):
        waiting[address] += int(count, 16)
    for connection in before | after:
        address = connection[0]
        is_lasting = connection in before and connection in after
        if _port(address) in shared_ports and not is_lasting:
            continue
        # If no socket listens on this address, one listens on this port of all addresses.
        waiting[address if address in waiting else _of_all_addresses(address)] -= 1
    return sum(count for count in waiting.values() if count > 0)


def _identity(connection: tuple[bytes, ...]) -> _Identity:
    """Return what tells a line of ``_UNACCEPTED`` from those of other connections."""
    local, remote, _, place = connection
    return local, remote, place


def _port(address: bytes) -> bytes:
    return address.partition(b":")[2]


def _of_all_addresses(address: bytes) -> bytes:
    host, _, port = address.partition(b":")
    return b"0" * len(host) + b":" + port


def _content(file: Path) -> bytes:
    """Return what a file contains; nothing if it is gone."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _namespace(pid: int) -> str:
    """Return the name of a process's network namespace; empty if it cannot be read."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def _start_time(pid: int | None) -> str:
    """Return when a process started, in the unit of the kernel; empty if there is none."""
    stat = _content(Path(f"/proc/{pid}/stat")).decode(errors="replace")
    return stat.rpartition(")")[2].split()[_START_TIME] if stat else ""


def warn(message: str, **facts: object) -> None:
    """Print a warning for the operator of the machine, with facts as ``name=value``."""
    # Imported here: boxes of bubblewrap also start without the packages of this project.
    import structlog

    structlog.get_logger("fumehood.engines").warning(message, **facts)
