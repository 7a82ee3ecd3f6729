"""One container of Docker, as a box of an agent or of a workspace."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock

from fumehood.core.errors import InfraError
from fumehood.engines.box_files import HeldByBox
from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.docker.first_process import FirstProcess
from fumehood.engines.docker.written import (
    ContainerFiles,
    DiskMeter,
    free_space,
    require_short_list,
)
from fumehood.engines.engine import (
    BoxOutput,
    Exit,
    ExitReason,
    FreeSpace,
    KilledOutside,
    NotBegun,
    NotEnded,
)
from fumehood.engines.kernel_queues import warn
from fumehood.engines.output import FrameReader
from fumehood.engines.pausing import Pausing

_KILLED = 137
"""Exit status of a process that SIGKILL ended: 128 + 9."""
_DELETED = 2
"""Kind of a change. Source: Docker Engine API, ContainerChanges."""
_DRAIN_TIMEOUT_S = 10.0
"""Time for reading the remaining output of a removed container."""
_WAIT_MIN_S = 0.05
"""The daemon cannot answer within a shorter timeout."""
_WAIT_ENDED_S = 1.0
"""Time in which also a busy daemon answers how a container ended."""


class DockerBox:
    """A container; implements the engine's ``Box`` and ``LiveWorkspaceBox``."""

    def __init__(
        self, daemon: Daemon, name: str, container: str, output: FrameReader, held: HeldByBox
    ) -> None:
        self._daemon = daemon
        self._id = container
        self._held = held
        self.name = name
        """The container's name."""
        self._output = output
        self._lock = Lock()
        self._first: FirstProcess | None = None
        """None until it is first needed; a box of an agent does not need it."""
        self._files: ContainerFiles | None = None
        self._not_begun: NotBegun | None = None
        """Set when a program did not begin. The agent can then cause errors of the daemon."""
        self._killed_for: ExitReason | None = None
        self._exit: Exit | None = None
        self._closed: BoxOutput | None = None
        self._pausing = Pausing(
            lambda: self._asked().pause(name), lambda: self._asked().resume(name)
        )
        self._meter = DiskMeter(self._pausing.meanwhile)

    def host_pid(self) -> int | None:
        """Return the process ID of the container's first process."""
        return None if self._closed else self._asked().first_process(self.name)

    def wait(self, timeout_ms: int) -> Exit | None:
        """Wait until the agent's process ends, at most ``timeout_ms``."""
        if self._exit is None:
            first, timeout_s = self._first, max(timeout_ms / 1000, _WAIT_MIN_S)
            if first is not None and first.is_found:
                # Without the daemon, for which each question takes milliseconds.
                if not first.wait(timeout_ms):
                    return None
                timeout_s = max(timeout_s, _WAIT_ENDED_S)
            code = self._daemon.wait(self.name, timeout_s)
            if code is not None:
                self._exit = Exit(code, self._reason(code))
        return self._exit

    def kill(self, reason: ExitReason = ExitReason.KILLED) -> None:
        """Stop the container at once."""
        with self._lock:
            # A later kill() finds a container that this box has killed before.
            if self._closed is None and self._exit is None:
                self._kill_first(reason)
                with self._excusing():
                    if self._daemon.kill(self.name):
                        self._killed_for = self._killed_for or reason

    def close(self) -> BoxOutput:
        """Stop the container, collect its output and remove it."""
        with self._lock:
            if self._closed is None:
                self._kill_first(ExitReason.KILLED)
                with self._excusing():
                    self._daemon.remove(self.name)
                    self._held.release()
                if self._first is not None:
                    self._first.close()
                self._closed = self._output.finish(_DRAIN_TIMEOUT_S)
            return self._closed

    def written_bytes(self, bytes_max: int | None = None) -> int:
        """Return the size of the files that differ from the image.

        Root also counts deleted files that are open, and a size for each file.
        """
        files, pid = self._host_files(), self.host_pid()
        # The daemon can be on another machine.
        if files is None or pid is None or not files.upper.is_dir():
            return self._asked().written_bytes(self.name)
        return self._meter.measure(
            lambda: files.written_bytes(pid, bytes_max),
            lambda: free_space(files.upper).size_bytes,
        )

    def free_space(self) -> FreeSpace | None:
        """Return what is free on the disk to which the workspace writes; None if this user is not
        root, or if the daemon does not answer or is on another machine."""
        if self._is_unreachable:
            return None
        try:
            files = self._host_files()
            if files is None or not self._found_first().is_found:
                return None
            return free_space(files.upper)
        except (OSError, InfraError):  # The container is gone, or the daemon does not answer.
            return None

    def _host_files(self) -> ContainerFiles | None:
        if self._files is None and os.geteuid() == 0:
            self._files = self._asked().host_files(self.name)
        return self._files

    def _found_first(self) -> FirstProcess:
        """Return the first process of the container, after looking for it once."""
        if self._first is None:
            found = FirstProcess(self._id, self._asked().first_process(self.name))
            with self._lock:
                if self._first is not None or self._closed is not None:
                    found.close()
                self._first = self._first or found
        return self._first

    def deleted(self) -> tuple[str, ...]:
        """Return the paths of the image that were deleted, sorted."""
        return tuple(sorted(path for path, kind in self._changes() if kind == _DELETED))

    def changed(self) -> frozenset[str]:
        """Return the paths that were added or changed."""
        return frozenset(path for path, kind in self._changes() if kind != _DELETED)

    def copy_out(self, path: str, bytes_max: int) -> bytes | None:
        """Return a file or folder as a tar; None if there is no such path."""
        return self._asked().copy_out(self.name, path, bytes_max)

    def pause(self) -> None:
        """Stop all programs until :meth:`resume`."""
        self._pausing.pause()

    def resume(self) -> None:
        """Continue all programs."""
        self._pausing.resume()

    def unpack(self, archive: bytes) -> None:
        """Unpack a tar at /."""
        self._asked().unpack(self.name, archive)

    def execute(
        self, command: Sequence[str], environment: Mapping[str, str]
    ) -> Callable[[], int | None]:
        """Start a command as root; return a function that returns its exit status, or None while
        it runs."""
        with self._pausing.starting():
            self._found_first()
            try:
                return self._asked().execute(self.name, command, environment)
            except NotBegun as error:
                # The daemon answers no request about this container until its processes end.
                with self._lock:
                    self._not_begun = error
                    self._kill_first(ExitReason.KILLED)
                    if self._is_unreachable:
                        self._exit = Exit(_KILLED, ExitReason.KILLED)
                        warn(f"{error}, and this user cannot end its container", box=self.name)
                raise

    @property
    def _is_unreachable(self) -> bool:
        """Whether this user can kill the container neither with the daemon nor without it."""
        can_kill = self._first is not None and self._first.is_found
        return self._not_begun is not None and not can_kill

    def _asked(self) -> Daemon:
        """Return the daemon, for a request about the container.

        Raises:
            NotBegun: it would not answer, because of a program that did not begin.
        """
        if self._is_unreachable:
            raise NotBegun(str(self._not_begun))
        return self._daemon

    @contextmanager
    def _excusing(self) -> Iterator[None]:
        """Permit errors of the daemon that an agent could cause; a later command removes the
        container."""
        try:
            yield
        except InfraError as error:
            if self._not_begun is None and not isinstance(error, NotEnded):
                raise
            if not self._is_unreachable:  # Otherwise, a warning was printed.
                warn(str(error), box=self.name)

    def _kill_first(self, reason: ExitReason) -> None:
        """Kill the container without the daemon, if its first process was found."""
        if self._first is not None and self._first.kill():
            self._killed_for = self._killed_for or reason

    def _changes(self) -> list[tuple[str, int]]:
        files = self._host_files()
        if files is not None:
            # The daemon would keep all paths in memory.
            require_short_list(files.upper)
        return self._asked().changes(self.name)

    def _reason(self, code: int) -> ExitReason:
        if code != _KILLED:
            return ExitReason.EXITED
        # While kill() runs, it is unknown whether it or another process ended the container.
        with self._lock:
            if self._killed_for is not None:
                return self._killed_for
        if self._daemon.was_out_of_memory(self.name):
            return ExitReason.OUT_OF_MEMORY
        if self._daemon.was_killed(self.name):
            raise KilledOutside("the container was killed from outside")
        return ExitReason.EXITED
