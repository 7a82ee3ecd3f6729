"""A box that is a child process of ours: started, waited for, killed with its group, collected.

Knows nothing about namespaces or agents: the engines that use it say what to run and what its end means.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

from fumehood.core.errors import InfraError
from fumehood.engines.engine import BoxOutput, Exit, ExitReason
from fumehood.engines.output import PipeReader

KILL_TIMEOUT_S = 10.0
"""After SIGKILL; only a process stuck in the kernel takes longer."""
DRAIN_TIMEOUT_S = 2.0
"""For the output of a process that has ended. Longer means that some other process holds the pipe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to start."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    """All of it; nothing is inherited."""
    descriptors: tuple[int, ...] = ()
    """Passed on under their own numbers."""
    mark: str = ""
    """What the process is told that it is called; empty for the first of the arguments."""


class ProcessLauncher:
    """Starts children from one thread that lives as long as this object.

    "Die with the parent" means the parent *thread* (prctl(2), PR_SET_PDEATHSIG), so a child started from a
    worker of a pool would end with that worker.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "box-starter")

    def start(self, command: Command) -> subprocess.Popen[bytes]:
        """Start a child at the head of a session and group of its own.

        Raises:
            InfraError: it cannot be started.
        """
        try:
            return self._thread.submit(_start, command).result()
        except OSError as error:
            raise InfraError(f"cannot start {command.arguments[0]}: {error.strerror}") from error

    def close(self) -> None:
        """End the thread, and with it whatever still runs."""
        self._thread.shutdown()


class ChildBox:
    """A box whose life is that of one child process and its group."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        limit_bytes: int,
        *,
        read_code: Callable[[int], int] | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        """Take over a started child.

        Args:
            child: with pipes for standard output and standard error.
            limit_bytes: kept of each output.
            read_code: makes the agent's exit status of the child's, which is negative where a signal of that
                number ended it; may raise InfraError. Not asked when :meth:`kill` ended the box.
            on_close: called once, when nothing is left.
        """
        assert child.stdout is not None
        assert child.stderr is not None
        self._child = child
        self._read_code = read_code or shell_code
        self._on_close = on_close
        self._handle = os.pidfd_open(child.pid)
        self._output = PipeReader(
            os.dup(child.stdout.fileno()), os.dup(child.stderr.fileno()), limit_bytes
        )
        child.stdout.close()
        child.stderr.close()
        self._lock = Lock()
        self._was_killed = False
        self._closed: BoxOutput | None = None

    @property
    def name(self) -> str:
        """The number of its first process."""
        return f"process {self._child.pid}"

    def host_pid(self) -> int | None:
        """Return the number of its first process, until it is closed."""
        return None if self._closed else self._child.pid

    def wait(self, timeout_ms: int) -> Exit | None:
        """Wait until the agent's process ends, at most ``timeout_ms``."""
        if not self._has_ended(timeout_ms):
            return None
        code = self._code()
        if self._was_killed:
            return Exit(shell_code(code), ExitReason.KILLED)
        return Exit(self._read_code(code), ExitReason.EXITED)

    def kill(self) -> None:
        """Stop the whole group at once."""
        with self._lock:
            if self._closed is None and not self._has_ended(0):
                self._was_killed = True
                self._kill_group()

    def close(self) -> BoxOutput:
        """Stop what still runs of the group, collect its output and its remains."""
        with self._lock:
            if self._closed is None:
                self._closed = self._end()
                self._on_close()
            return self._closed

    def _end(self) -> BoxOutput:
        # Its own exit is not collected before this point, so the number of the group is still ours.
        self._kill_group()
        if not self._has_ended(round(KILL_TIMEOUT_S * 1000)):
            raise InfraError(
                f"{self.name} does not end, {KILL_TIMEOUT_S:.0f} s after it was killed"
            )
        self._child.wait()
        os.close(self._handle)
        return self._output.finish(DRAIN_TIMEOUT_S)

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)

    def _has_ended(self, timeout_ms: int) -> bool:
        ready = select.poll()
        ready.register(self._handle, select.POLLIN)
        return bool(ready.poll(timeout_ms))

    def _code(self) -> int:
        ended = os.waitid(os.P_PIDFD, self._handle, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def shell_code(code: int) -> int:
    """Return an exit status as shells tell it: 128 + the signal's number where a signal ended the process."""
    return code if code >= 0 else 128 - code


def _start(command: Command) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [command.mark or command.arguments[0], *command.arguments[1:]],
        executable=command.arguments[0],
        env=command.environment,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=command.descriptors,
        start_new_session=True,
    )
