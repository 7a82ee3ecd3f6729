"""A fork server that is forked from its owner, so that both import everything only once."""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from fumehood.supervised import serve

NAME = "fork-server"
"""Shown by ps(1) and top(1) as the command name."""


class ForkedServer:
    """The process of a fork server that waits for its settings."""

    def __init__(self) -> None:
        """Fork this process, which must have one thread, hold no secret, and have imported what the
        children of the server need."""
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        """Connection to the server."""
        gc.collect()
        gc.freeze()  # Otherwise a collection in either process would copy the pages of all objects.
        self.pid = os.fork()
        """Process ID of the server."""
        if self.pid == 0:
            serve.run_child(lambda: _serve(theirs.fileno()))
        theirs.close()
        self._pidfd = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        """Return None while the process runs, and 0 when it has ended."""
        ended, _, _ = select.select([self._pidfd], [], [], 0)
        return 0 if ended else None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process, without a timeout as long as it takes.

        Raises:
            TimeoutExpired: it has not ended.
        """
        ended, _, _ = select.select([self._pidfd], [], [], timeout)
        if not ended:
            raise subprocess.TimeoutExpired(NAME, timeout or 0)
        with suppress(ChildProcessError):  # An earlier call released it.
            os.waitpid(self.pid, 0)
        return 0

    def kill(self) -> None:
        """Kill the process."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)


def _serve(control: int) -> None:
    # The input of the owner may contain secrets.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.closerange(3, control)
    os.closerange(control + 1, os.sysconf("SC_OPEN_MAX"))
    with suppress(OSError):
        Path("/proc/self/comm").write_text(NAME, encoding="ascii")
    serve.main(control)
