"""Lists, signals and reads processes of the host."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from attempts import GIVEN, attempt, canaries_in

HOST_PID = int(GIVEN.get("pid", "2"))


def own_pids() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdecimal()}


def seen() -> str:
    secrets = set[str]()
    for pid in own_pids():
        for file in ("cmdline", "environ", "maps", "comm"):
            try:
                secrets.update(canaries_in(Path(f"/proc/{pid}/{file}").read_bytes()))
            except OSError:
                continue
    return ",".join(sorted(secrets))


def read(file: str) -> str:
    return next(iter(canaries_in(Path(f"/proc/{HOST_PID}/{file}").read_bytes())), "")


def is_strange() -> bool:
    """Return whether a process ID of the host belongs to no process of the box."""
    return HOST_PID not in own_pids()


def stop() -> str:
    if not is_strange() and GIVEN.get("unboxed") is None:
        return ""
    os.kill(HOST_PID, signal.SIGSTOP)
    return "stopped"


def others() -> str:
    """Count the processes that a signal reaches although they are not listed."""
    known, hidden = own_pids(), 0
    for pid in range(1, 100_000):
        if pid not in known:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                continue
            except PermissionError:
                pass
            # Any other ID is a thread, or a process that has just started.
            hidden += Path(f"/proc/{pid}").exists() and pid not in own_pids()
    return f"{hidden} processes" if hidden else ""


def slow() -> bool:
    if is_strange():
        os.setpriority(os.PRIO_PROCESS, HOST_PID, 19)
    return is_strange()


attempt("what processes tell of themselves", seen)
for file in ("cmdline", "environ", "status", "maps"):
    attempt(f"the {file} of a host process", read, file)
attempt("stop a host process", stop)
attempt("a handle of a host process", lambda: is_strange() and os.pidfd_open(HOST_PID))
attempt("slow a host process down", slow)
attempt("processes that answer unseen", others)
