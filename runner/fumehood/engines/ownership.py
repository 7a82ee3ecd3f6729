"""Labels that name the owner of a resource, and the check whether that owner is alive.

The owner is a process: its ID and start time, because IDs are reused, with the machine, its boot
and the process namespace in which they are valid. An owner on another machine or in another
container counts as alive, so that no other user's box is removed.

The start time is read from /proc in clock ticks since boot. It must not depend on the wall clock
(as ``psutil.create_time`` does), which can be set while boxes run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

RUN = "fumehood.run"
OWNER_PID = "fumehood.owner.pid"
OWNER_START = "fumehood.owner.start"
OWNER_BOOT = "fumehood.owner.boot"
OWNER_MACHINE = "fumehood.owner.machine"
OWNER_NAMESPACE = "fumehood.owner.pid_namespace"

_PROC = Path("/proc")
_START_TIME = 19
"""Field of /proc/PID/stat after the name, counted from 0. Source: proc(5)."""


def owner_labels(run_id: str) -> dict[str, str]:
    """Return the labels of resources of this process that belong to a run."""
    return {
        RUN: run_id,
        OWNER_PID: str(os.getpid()),
        OWNER_START: str(start_time(os.getpid())),
        OWNER_BOOT: _boot_id(),
        OWNER_MACHINE: _machine_id(),
        OWNER_NAMESPACE: _pid_namespace(),
    }


def owner_is_alive(labels: Mapping[str, str]) -> bool:
    """Return whether the owner named by ``labels`` is alive or cannot be judged from here."""
    pid = labels.get(OWNER_PID, "")
    if not pid.isdecimal() or labels.get(OWNER_MACHINE) != _machine_id():
        return True
    if labels.get(OWNER_BOOT) != _boot_id():
        return False
    if labels.get(OWNER_NAMESPACE) != _pid_namespace():
        return True
    return str(start_time(int(pid))) == labels.get(OWNER_START)


def start_time(pid: int) -> int | None:
    """Return the start time of process ``pid`` in clock ticks since boot; None if there is no such
    process."""
    fields = process_stat(pid)
    return int(fields[_START_TIME]) if fields else None


def process_stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name, which may hold blanks and parentheses;
    none if there is no such process."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return stat.rpartition(")")[2].split()


def _boot_id() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _machine_id() -> str:
    try:
        return Path("/etc/machine-id").read_text(encoding="ascii").strip() or os.uname().nodename
    except FileNotFoundError:
        return os.uname().nodename


def _pid_namespace() -> str:
    return str((_PROC / "self/ns/pid").readlink())
