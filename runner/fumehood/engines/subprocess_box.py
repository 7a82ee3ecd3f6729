"""A box that is a child process with its process group. Used by the bubblewrap and process
engines."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import IO, Protocol, TypeVar

from fumehood.core.errors import InfraError
from fumehood.engines.engine import BoxOutput, Exit, ExitReason, NotEnded, Orphan, OwnerCheck
from fumehood.engines.kernel_queues import QueueWatch, warn
from fumehood.engines.output import PipeReader
from fumehood.engines.ownership import process_stat
from fumehood.engines.records import SessionRecords
from fumehood.engines.start_limit import StartLimit

T = TypeVar("T")

KILL_TIMEOUT_S = 10.0
"""Time to end after SIGKILL; only a process blocked in the kernel takes longer."""
DRAIN_TIMEOUT_S = 2.0
"""For the remaining output of an ended process. Afterwards only another process can hold the
pipe."""
_PARENT = 1
"""Field of /proc/PID/stat after the name, counted from 0. Source: proc(5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A process to start."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    """The complete environment; no variable is inherited."""
    descriptors: tuple[int, ...] = ()
    """Inherited file descriptors; they keep their numbers."""
    mark: str = ""
    """``argv[0]`` of the process; empty for the first of the arguments."""
    stdin: Path = Path("/dev/null")
    """Its standard input, as the thread of the launcher sees it."""


class ProcessLauncher:
    """Starts children from one thread that lives as long as this object.

    PR_SET_PDEATHSIG refers to the parent *thread* (prctl(2)), so a child that a pool's worker
    started would die with that worker.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "box-starter")

    def start(self, command: Command) -> subprocess.Popen[bytes]:
        """Start a child as the leader of a new session and group.

        Raises:
            InfraError: the child cannot be started.
        """
        try:
            return self._thread.submit(_start, command).result()
        except OSError as error:
            raise InfraError(f"cannot start {command.arguments[0]}: {error.strerror}") from error

    def call(self, function: Callable[[], T]) -> T:
        """Call a function in the thread, which can have a separate mount namespace."""
        return self._thread.submit(function).result()

    def close(self) -> None:
        """End the thread, and with it all children that still run."""
        self._thread.shutdown()


class StartedProcess(Protocol):
    """The first process of a box, such as a ``Popen`` with pipes."""

    @property
    def pid(self) -> int:
        """Process ID."""

    @property
    def stdout(self) -> IO[bytes] | None:
        """Pipe from its standard output."""

    @property
    def stderr(self) -> IO[bytes] | None:
        """Pipe from its standard error."""

    def wait(self) -> int:
        """Release an ended process."""


class ChildBox:
    """A box that consists of one child process and its group."""

    def __init__(
        self,
        child: StartedProcess,
        limit_bytes: int,
        *,
        pid: int | None = None,
        handle: int | None = None,
        read_code: Callable[[int], int] | None = None,
        read_reason: Callable[[int], ExitReason] = lambda code: ExitReason.EXITED,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        """Take ownership of a started child.

        Args:
            child: with pipes for standard output and standard error.
            limit_bytes: number of bytes to keep of each output.
            pid: a process of the box, for measurements; None for that of the child.
            handle: process descriptor of the child, owned by the box; None to open one.
            read_code: converts the child's exit status, negative for a signal, to that of the
                agent; may raise InfraError. Not called after :meth:`kill`.
            read_reason: returns why a box stopped that ended with a status by itself.
            on_close: called once, after everything has been removed.
        """
        assert child.stdout is not None
        assert child.stderr is not None
        self._child = child
        self._read_code = read_code or shell_code
        self._read_reason = read_reason
        self._pid = pid or child.pid
        self._exit: Exit | None = None
        self._on_close = on_close
        self._handle = os.pidfd_open(child.pid) if handle is None else handle
        self._first: int | None = None
        self._output = PipeReader(
            os.dup(child.stdout.fileno()), os.dup(child.stderr.fileno()), limit_bytes
        )
        child.stdout.close()
        child.stderr.close()
        self._lock = Lock()
        self._killed_for: ExitReason | None = None
        self._closed: BoxOutput | None = None

    @property
    def name(self) -> str:
        """The process ID of its first process."""
        return f"process {self._child.pid}"

    def host_pid(self) -> int | None:
        """Return the process ID of a process of the box; None after it is closed."""
        return None if self._closed else self._pid

    def hold_first(self, pid: int) -> bool:
        """From now on, kill process 1 together with the group, and so all processes of the box.

        Killing the group is not sufficient: a process of the same user can overwrite process 1
        through ``/proc/1/mem``, so that process 1 no longer ends with its parent.

        Args:
            pid: process ID of process 1 outside the box.

        Returns:
            True; False if process 1 has ended or is not a child of the box's child process.
        """
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        # The kernel gives the number of an ended process to another one.
        if process_stat(pid)[_PARENT:][:1] != [str(self._child.pid)]:
            os.close(handle)
            return False
        self._first = handle
        return True

    def wait(self, timeout_ms: int) -> Exit | None:
        """Wait until the agent's process ends, at most ``timeout_ms``."""
        if self._exit is None and self._has_ended(timeout_ms):
            self._exit = self._how_it_ended()
        return self._exit

    def kill(self, reason: ExitReason = ExitReason.KILLED) -> None:
        """Stop all processes of the box at once."""
        with self._lock:
            if self._closed is None and not self._has_ended(0):
                self._killed_for = self._killed_for or reason
                self._kill_group()

    def close(self) -> BoxOutput:
        """Stop all processes, collect the output and the exit status.

        A killed process that does not end is no failure, because an agent can cause this: the
        kernel can need minutes to free what a process holds. A later command removes the rest.
        """
        with self._lock:
            if self._closed is None:
                self._closed = self._end()
                try:
                    self._on_close()
                except NotEnded as error:
                    warn(str(error), box=self.name)
            return self._closed

    def _end(self) -> BoxOutput:
        # The child has not been waited for, so the kernel cannot have reused the group's ID.
        self._kill_group()
        if self._has_ended(round(KILL_TIMEOUT_S * 1000)):
            self._child.wait()
        else:
            seconds = f"{KILL_TIMEOUT_S:.0f} s"
            warn(f"a process of a box does not end, {seconds} after it was killed", box=self.name)
        os.close(self._handle)
        if self._first is not None:
            os.close(self._first)
        return self._output.finish(DRAIN_TIMEOUT_S)

    def _how_it_ended(self) -> Exit:
        code = self._code()
        if self._killed_for is not None:
            return Exit(shell_code(code), self._killed_for)
        code = self._read_code(code)
        return Exit(code, self._read_reason(code))

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        if self._first is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)

    def _has_ended(self, timeout_ms: int) -> bool:
        ready = select.poll()
        ready.register(self._handle, select.POLLIN)
        return bool(ready.poll(timeout_ms))

    def _code(self) -> int:
        ended = os.waitid(os.P_PIDFD, self._handle, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def die_with_parent() -> tuple[str, ...]:
    """Return the beginning of a command that the kernel kills when its parent thread ends; empty
    without setpriv, which is part of util-linux."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", "KILL", "--") if setpriv else ()


class ChildBoxEngine:
    """The methods that engines have in common whose boxes are child processes."""

    def __init__(self) -> None:
        self._starter = ProcessLauncher()
        self._records = SessionRecords()
        self._starting = StartLimit()
        self._queues = QueueWatch()

    def orphans(self, is_owned: OwnerCheck, *, images: bool = False) -> Iterable[Orphan]:
        """Return the boxes whose owner is gone.

        The kernel kills a box when its parent dies, except if the parent dies before the first
        process of the box has requested it (PR_SET_PDEATHSIG), or if an agent has overwritten the
        first process.
        """
        return self._records.orphans(is_owned)

    def remove(self, orphan: Orphan) -> bool:
        """Kill an orphaned box."""
        self._records.remove(orphan)
        return True

    def close(self) -> None:
        """End the thread that starts boxes, and all boxes that still run."""
        self._starter.close()


def shell_code(code: int) -> int:
    """Return an exit status in the notation of shells: 128 + the signal's number if a signal ended
    it."""
    return code if code >= 0 else 128 - code


def _start(command: Command) -> subprocess.Popen[bytes]:
    with command.stdin.open("rb") as stdin:
        return _popen(command, stdin)


def _popen(command: Command, stdin: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [command.mark or command.arguments[0], *command.arguments[1:]],
        executable=command.arguments[0],
        env=command.environment,
        cwd="/",
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=command.descriptors,
        start_new_session=True,
    )
