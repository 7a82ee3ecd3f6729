"""Kills a container without its daemon.

dockerd answers no request about a container, not even one to kill it, while a program that it
starts there has not begun. A process of a workspace can stop that program before it begins. When
the first process of a container ends, the kernel kills all others, including stopped ones.
"""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from pathlib import Path


class FirstProcess:
    """The first process of a container, if this user may signal it. Of its methods, only
    :meth:`wait` can run beside another one."""

    def __init__(self, container: str, pid: int | None) -> None:
        """Find the process.

        Args:
            container: ID of the container.
            pid: of its first process, as the daemon states it; None for none. The daemon can be on
                another machine, so the process is used only if the name of its control group
                contains the ID.
        """
        self._handle = None if pid is None else _opened(container, pid)

    @property
    def is_found(self) -> bool:
        """Whether this user may signal the process, which may have ended."""
        return self._handle is not None

    def kill(self) -> bool:
        """Kill all processes of the container; return False if it ended or no process was found."""
        if self._handle is None or _has_ended(self._handle):
            return False
        try:
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        except ProcessLookupError:  # It has ended meanwhile.
            return False
        return True

    def wait(self, timeout_ms: int) -> bool:
        """Return whether the process, which was found, ended within a time."""
        handle = self._handle  # Another thread can close it.
        return handle is None or _has_ended(handle, timeout_ms)

    def close(self) -> None:
        """Close the handle of the process."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _opened(container: str, pid: int) -> int | None:
    with suppress(OSError):
        handle = os.pidfd_open(pid)
        with suppress(OSError):
            groups = Path(f"/proc/{pid}/cgroup").read_text("utf-8", "replace")
            signal.pidfd_send_signal(handle, 0)
            # The kernel gives the number of an ended process to another one.
            if container in groups and not _has_ended(handle):
                return handle
        os.close(handle)
    return None


def _has_ended(handle: int, timeout_ms: int = 0) -> bool:
    ready = select.poll()
    ready.register(handle, select.POLLIN)
    return bool(ready.poll(timeout_ms))
