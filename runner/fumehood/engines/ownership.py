"""Who a leftover belongs to, written on it as labels, and whether that owner still lives.

A process is named by its number and its start time, for numbers are used again; both mean something only
on one machine, since one start of it, in one process namespace. An owner that cannot be judged from here,
because it is on another machine or in another container, counts as alive: better a leftover than somebody
else's box.
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
_START_TIME_FIELD = 22
"""Of /proc/PID/stat, counted from 1; clock ticks since the start of the machine. Source: proc(5)."""
_FIELDS_BEFORE_STATE = 2
"""The number and the name; the name may hold blanks and brackets, so counting starts after it."""


def owner_labels(run_id: str) -> dict[str, str]:
    """Return the labels of what this process leaves on the host.

    Args:
        run_id: the run on whose behalf; any text.
    """
    return {
        RUN: run_id,
        OWNER_PID: str(os.getpid()),
        OWNER_START: str(start_time(os.getpid())),
        OWNER_BOOT: _boot_id(),
        OWNER_MACHINE: _machine_id(),
        OWNER_NAMESPACE: _pid_namespace(),
    }


def owner_is_alive(labels: Mapping[str, str]) -> bool:
    """Tell whether the owner named by ``labels`` still lives, or cannot be judged from here."""
    pid = labels.get(OWNER_PID, "")
    if not pid.isdecimal() or labels.get(OWNER_MACHINE) != _machine_id():
        return True
    if labels.get(OWNER_BOOT) != _boot_id():
        return False
    if labels.get(OWNER_NAMESPACE) != _pid_namespace():
        return True
    return str(start_time(int(pid))) == labels.get(OWNER_START)


def start_time(pid: int) -> int | None:
    """Return when process ``pid`` was started, in clock ticks since the machine was; None without one."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat[stat.rindex(")") + 1 :].split()
    return int(fields[_START_TIME_FIELD - _FIELDS_BEFORE_STATE - 1])


def _boot_id() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _machine_id() -> str:
    try:
        return Path("/etc/machine-id").read_text(encoding="ascii").strip() or os.uname().nodename
    except FileNotFoundError:
        return os.uname().nodename


def _pid_namespace() -> str:
    return str((_PROC / "self/ns/pid").readlink())
