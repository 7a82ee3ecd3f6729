"""Starts the prepared process of bubblewrap, and boxes from it.

The prepared process is itself in a box of bwrap, in which it has the rights to make boxes. See
:mod:`fumehood.engines.bubblewrap.prepared`.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import IO

from fumehood.core.errors import InfraError
from fumehood.engines.agent_code import ENVIRONMENT
from fumehood.engines.box_files import BoxFiles
from fumehood.engines.bubblewrap.command import (
    PACKAGES_FOLDER,
    PYTHON_PREFIX,
    StatusPipe,
    View,
    prepared_command,
    view_arguments,
)
from fumehood.engines.bubblewrap.prepared import PRIVATE, ROOT
from fumehood.engines.bubblewrap.private_mounts import private_view
from fumehood.engines.engine import BoxOutput, Exit, Limits, Mount
from fumehood.engines.images.sdk_folder import installed_sdk
from fumehood.engines.ownership import owner_labels
from fumehood.engines.state_folder import open_folder
from fumehood.engines.subprocess_box import ChildBox, Command, ProcessLauncher
from fumehood.supervised.fork_server import LIBRARY_VARIABLES

_PACKAGE = Path(__file__).parents[2]
_CODE = "/opt/fumehood"
"""Folder in the view of the prepared process with this package."""
_BOX_FILES = "/files"
"""Folder in that view, with the folders that hold sockets and files of boxes."""
_READY_TIMEOUT_S = 60.0
_ANSWER_BYTES_MAX = 4096
_OWNER_ONLY = 0o500
_NAMESPACES = ("mnt", "net", "ipc", "pid", "uts", "cgroup")


def can_fork(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Return whether a forked process can run a command: Python with a module, or with code."""
    variables = {name for name in environment if name.startswith("PYTHON")}
    is_python = command[0] == "python3" and len(command) > 2 and command[1] in ("-m", "-c")
    return is_python and variables <= {"PYTHONPATH"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One box to fork."""

    view: View
    environment: Mapping[str, str]
    limits: Limits
    command: Sequence[str]
    user: int | None
    has_group: bool
    is_private: bool
    """Whether the box gets private inodes for the folders of the host."""


@dataclass(slots=True)
class ForkedChild:
    """The first process of a forked box, which is not a child of this process."""

    pid: int
    stdout: IO[bytes]
    stderr: IO[bytes]

    def wait(self) -> int:
        """Do nothing: the kernel forgets the process by itself."""
        return 0


class ForkedBox(ChildBox):
    """A box that was forked. Its exit status is read from its status pipe.

    The end of a process is known only after the kernel has removed its namespaces, which takes much
    longer than the rest of its end. This box therefore holds them until after its end.
    """

    _status: StatusPipe | None = None
    _close_later: Callable[[Sequence[int]], object]

    def hold_namespaces(self, status: StatusPipe, later: Callable[[Sequence[int]], object]) -> None:
        """Hold the namespaces as soon as they exist.

        Args:
            status: gets the first report when they exist.
            later: closes descriptors without delaying the caller.
        """
        self._namespaces: list[int] = []
        self._status, self._close_later = status, later

    def wait(self, timeout_ms: int) -> Exit | None:
        """Wait until the agent's process ends, at most ``timeout_ms``."""
        if self._status is not None:
            deadline = time.monotonic() + timeout_ms / 1000
            either = select.poll()
            for descriptor in (self._handle, self._status.fileno()):
                either.register(descriptor, select.POLLIN)
            if not either.poll(timeout_ms):
                return None
            self._status = None
            for name in _NAMESPACES:
                with suppress(OSError):  # The process has ended.
                    self._namespaces.append(os.open(f"/proc/{self._pid}/ns/{name}", os.O_RDONLY))
            timeout_ms = max(0, round((deadline - time.monotonic()) * 1000))
        return super().wait(timeout_ms)

    def _end(self) -> BoxOutput:
        self._status = None
        try:
            return super()._end()
        finally:
            # Only once, because other files get the numbers of closed ones.
            held, self._namespaces = self._namespaces, []
            self._close_later(held)

    def _kill_group(self) -> None:
        # The kernel ends every process of a box with the first one.
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def _code(self) -> int:
        return -signal.SIGKILL


class PreparedProcess:
    """The connection to a prepared process. Safe to use from several threads."""

    def __init__(self, launcher: ProcessLauncher, view: View, program: bytes | None) -> None:
        """Store the settings of the process; start nothing.

        Args:
            launcher: starts it.
            view: what every box sees of the host, except the SDK.
            program: the filter of system calls of boxes; None for none.
        """
        self._launcher, self._program = launcher, program
        self._files = BoxFiles(owner_labels(""))
        self._lock = Lock()
        self._closing = ThreadPoolExecutor(1, "box-namespaces")
        self._processes: dict[Path, _Connection] = {}
        self._shared = tuple(
            Mount(Path(mount.target), mount.target) for mount in (*view.mounts, _sdk_mount())
        )
        self._view = view

    def start(self, request: Request, folder: Path | None, files: Sequence[int]) -> int:
        """Fork a box, and return the process descriptor of its first process.

        Args:
            request: the box.
            folder: of its sockets; None for a box without them.
            files: for status, standard output, standard error, and the gate.

        Raises:
            InfraError: it cannot be forked.
        """
        state = open_folder()
        top = state if folder is None or folder.is_relative_to(state) else folder.parent
        with self._lock:
            connection = self._processes.get(top)
            if connection is not None and connection.has_ended():
                connection.close()
                connection = None
            if connection is None:
                connection = self._processes[top] = self._launch({state: None, top: None})
        content = json.dumps(self._fields(request, connection)).encode()
        request_file = os.memfd_create("request")
        try:
            os.write(request_file, content)
            os.lseek(request_file, 0, os.SEEK_SET)
            return connection.fork([request_file, *files])
        finally:
            os.close(request_file)

    def close(self) -> None:
        """End the prepared processes, with all boxes that still run."""
        for connection in self._processes.values():
            connection.close()
        self._files.remove()
        self._closing.shutdown()

    def close_later(self, files: Sequence[int]) -> None:
        """Close descriptors of namespaces in another thread; each can take milliseconds."""
        for file in files:
            self._closing.submit(os.close, file)

    def _fields(self, request: Request, connection: _Connection) -> dict[str, object]:
        own = [
            replace(mount, source=connection.inside(mount.source))
            for mount in request.view.mounts
            if mount.target not in {shared.target for shared in self._shared}
        ]
        view = replace(request.view, mounts=(*self._shared, *own))
        sources = [mount.source for mount in self._shared]
        private = private_view(Path(PRIVATE), sources) if request.is_private else None
        arguments = view_arguments(view, request.environment, request.limits, private)
        return {
            "view": list(arguments),
            "shared": [str(source) for source in sources] if private else None,
            "limits": asdict(request.limits),
            "command": list(request.command),
            "user": request.user,
            "has_group": request.has_group,
        }

    def _launch(self, folders: Mapping[Path, None]) -> _Connection:
        targets = {folder: f"{_BOX_FILES}/{number}" for number, folder in enumerate(folders)}
        mounts = [_sdk_mount(), Mount(_PACKAGE, f"{_CODE}/fumehood")]
        mounts += [Mount(folder, target) for folder, target in targets.items()]
        mounts.append(self._private_python())
        environment = {
            **ENVIRONMENT,
            **LIBRARY_VARIABLES,
            "PYTHONPATH": f"{PACKAGES_FOLDER}:{_CODE}",
        }
        arguments = [
            *("--dir", ROOT, "--dir", PRIVATE),
            *view_arguments(self._view.with_mounts(mounts), environment, Limits(), None),
        ]
        own_end, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        view_file = os.memfd_create("view")
        with its_end:
            try:
                os.write(view_file, "\0".join(arguments).encode())
                os.lseek(view_file, 0, os.SEEK_SET)
                child = self._launcher.start(
                    Command(
                        arguments=prepared_command(view_file, its_end.fileno()),
                        environment={},
                        descriptors=(view_file, its_end.fileno()),
                    )
                )
            finally:
                os.close(view_file)
        return _Connection(child, own_end, targets, self._program)

    def _private_python(self) -> Mount:
        """Return a copy of this Python's program that boxes can neither read nor run.

        Each box can reach the program of its process as /proc/self/exe, and boxes could exchange
        messages by locks on one file and by watching it.
        """
        prefix = Path(sys.base_prefix).resolve()
        program = (prefix / "bin" / "python3").resolve()
        inside = program if prefix == Path("/usr") else PYTHON_PREFIX / program.relative_to(prefix)
        return Mount(self._files.write(program.read_bytes(), _OWNER_ONLY), str(inside))


class _Connection:
    """One prepared process."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        control: socket.socket,
        targets: Mapping[Path, str],
        program: bytes | None,
    ) -> None:
        self._child, self._control, self._targets = child, control, targets
        self._lock = Lock()
        control.settimeout(_READY_TIMEOUT_S)
        try:
            control.send(b"-" + (program or b""))
            answer = control.recv(_ANSWER_BYTES_MAX).decode()
        except OSError:
            answer = ""
        if answer != "ready":
            _, text = self.close()
            problem = answer or text.decode(errors="replace").strip().rpartition("\n")[2]
            raise InfraError(problem or "its process does not start")

    def has_ended(self) -> bool:
        """Return whether the process is gone, and all its boxes with it."""
        return self._child.poll() is not None

    def inside(self, source: Path) -> Path:
        """Return the path of a file of a box in the view of the prepared process."""
        for folder, target in self._targets.items():
            if source.is_relative_to(folder):
                return target / source.relative_to(folder)
        raise InfraError(f"a forked box cannot see {source}")

    def fork(self, files: Sequence[int]) -> int:
        """Fork a box with the descriptors of its request; return a process descriptor."""
        try:
            with self._lock:
                socket.send_fds(self._control, [b"x"], files)
                answer, handles, _, _ = socket.recv_fds(self._control, _ANSWER_BYTES_MAX, 1)
        except OSError as error:
            raise InfraError(f"the prepared process does not answer: {error}") from None
        if not handles:
            raise InfraError(f"cannot fork a box: {answer.decode() or 'its process has ended'}")
        return handles[0]

    def close(self) -> tuple[bytes, bytes]:
        """End the process and return its output."""
        self._control.close()
        with suppress(ProcessLookupError):
            self._child.kill()
        return self._child.communicate()


def process_id(handle: int) -> int:
    """Return the process ID of a process descriptor; see pidfd_open(2)."""
    text = Path(f"/proc/self/fdinfo/{handle}").read_text("ascii")
    match = re.search(r"^Pid:\t(-?\d+)$", text, re.MULTILINE)
    return int(match[1]) if match else -1


def _sdk_mount() -> Mount:
    return Mount(installed_sdk(), PACKAGES_FOLDER)
