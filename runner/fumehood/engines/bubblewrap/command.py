"""Builds the command line of a bubblewrap box, and the view of the host that the box sees.

An ordinary user needs one bwrap. Root needs two nested ones: the outer bwrap builds the view,
because only root may be able to read its parts; setpriv then switches to the user of the box, who
starts the inner bwrap. With a single bwrap the agent would be root on the host, without
capabilities, and RLIMIT_NPROC does not apply to root.

bwrap reads the arguments that describe the view from a file descriptor, because the agent can read
the command line of the first process and should not learn the host's folders.

The view contains the host's programs and libraries, this Python and the SDK, and no personal files.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from fumehood.core.errors import InfraError
from fumehood.engines.bubblewrap.private_mounts import DEVICES, PrivateView
from fumehood.engines.engine import BOX_UID, TIMERS_MAX, Limits, Mount
from fumehood.engines.host_names import MASKED

_HOSTNAME = "localhost"
_STATUS_BYTES_MAX = 65536
_START_TIMEOUT_S = 20.0
"""Until bwrap has made the first process of a box."""

_NAMESPACES = (
    "--unshare-ipc",
    "--unshare-net",
    "--unshare-uts",
    "--unshare-pid",
    "--unshare-cgroup-try",
)
_UNPRIVILEGED = (
    *("--unshare-user", "--disable-userns"),
    *("--uid", str(BOX_UID), "--gid", str(BOX_UID)),
    *("--cap-drop", "ALL"),
)


def view_arguments(
    view: View, environment: Mapping[str, str], limits: Limits, private: PrivateView | None
) -> Iterator[str]:
    """Yield the arguments of the bwrap that builds the view.

    Args:
        view: the parts of the host that the box sees.
        environment: set inside, in addition to the search paths.
        limits: the source of the size of /tmp.
        private: replaces the sources that other boxes see too; None if they are shared.
    """
    yield from _NAMESPACES
    yield from ("--hostname", _HOSTNAME, "--die-with-parent", "--new-session", "--clearenv")
    yield from ("--setenv", "PATH", view.path)
    if view.library_path:
        yield from ("--setenv", "LD_LIBRARY_PATH", view.library_path)
    for name, value in environment.items():
        yield from ("--setenv", name, value)
    yield from view.bwrap_arguments(private.sources if private else {})
    yield from ("--proc", "/proc", "--dev", "/dev")
    if private is None:
        yield from _masks(Path("/dev/null"))
        yield from ("--perms", "1777", "--size", str(limits.tmp_bytes), "--tmpfs", "/tmp")
    else:
        for name in DEVICES:
            yield from ("--dev-bind", str(private.device(name)), f"/dev/{name}")
        yield from _masks(private.device("null"))
        yield from ("--bind", str(private.tmp), "/tmp")
    # No pseudo-terminals: see decision 78.
    yield from ("--tmpfs", "/dev/pts", "--remount-ro", "/dev/pts")
    yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/")


def _masks(null: Path) -> Iterator[str]:
    for path in filter(os.path.exists, MASKED):
        if os.path.isdir(path):
            yield from ("--tmpfs", path, "--remount-ro", path)
        else:
            yield from ("--dev-bind", str(null), path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptors:
    """The files that bwrap inherits."""

    view: int
    """It reads the arguments of the view from it."""
    status: int
    """It writes the exit status of the command to it."""
    filter: int | None
    """It reads the system call filter from it; None for no filter."""
    info: int
    """It writes the process ID of the box to it."""
    block: int
    """It waits for a byte from it before it runs the command."""

    def all(self) -> tuple[int, ...]:
        """Return those that are there."""
        numbers = (self.view, self.status, self.filter, self.info, self.block)
        return tuple(number for number in numbers if number is not None)


def box_command(
    files: Descriptors,
    limits: Limits,
    command: Sequence[str],
    user: int | None,
    *,
    has_group: bool,
) -> list[str]:
    """Return the whole command line.

    Args:
        files: inherited by it.
        limits: applied to each process.
        command: to run inside.
        user: of the box on the host, if root starts it; otherwise None.
        has_group: whether a control group limits the memory of the box.
    """
    last: tuple[str, ...] = ("--json-status-fd", str(files.status))
    if files.filter is not None:
        last = (*last, "--seccomp", str(files.filter))
    first = (
        *("--info-fd", str(files.info), "--block-fd", str(files.block)),
        *("--args", str(files.view), "--"),
    )
    inside = [*_prlimit(limits, has_group=has_group), *command]
    if user is None:
        return [_tool("bwrap"), *_UNPRIVILEGED, *last, *first, *inside]
    kept_capabilities = ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    return [
        *(_tool("bwrap"), *kept_capabilities, *first, *_setpriv(user)),
        # The box is in its control group by now, so the group is the root of what it sees.
        *(_tool("bwrap"), "--unshare-cgroup-try", *_UNPRIVILEGED, *last),
        *("--die-with-parent", "--dev-bind", "/", "/", "--"),
        *inside,
    ]


_KEPT_TO_FORK = "CHOWN DAC_OVERRIDE MKNOD NET_ADMIN SETGID SETPCAP SETUID SYS_ADMIN SYS_CHROOT"
"""Capabilities with which a process makes boxes."""


def prepared_command(view: int, control: int) -> list[str]:
    """Return the command line of the process from which boxes are forked; needs root.

    Args:
        view: bwrap reads the arguments of the process's view from this file.
        control: the socket on which the process gets requests.
    """
    # With another ID, bwrap would make two user namespaces, and the process would have no rights in
    # the outer one, to which its other namespaces belong.
    kept = (word for name in _KEPT_TO_FORK.split() for word in ("--cap-add", f"CAP_{name}"))
    return [
        *(_tool("bwrap"), "--cap-drop", "ALL", *kept, "--args", str(view), "--"),
        *("python3", "-m", "fumehood.engines.bubblewrap.prepared", str(control)),
    ]


class StartGate:
    """Holds a box until it is in its control group: two pipes to the first bwrap."""

    def __init__(self) -> None:
        self._info_fd, self.info_fd = os.pipe()
        """bwrap inherits ``info_fd`` and ``block_fd``; the caller closes its own copies."""
        self.block_fd, self._block_fd = os.pipe()

    def box_pid(self) -> int | None:
        """Return the process ID of the box; None if bwrap ended before it made one."""
        text = b""
        poll = select.poll()
        poll.register(self._info_fd, select.POLLIN)
        while True:
            ready = poll.poll(_START_TIMEOUT_S * 1000)
            piece = os.read(self._info_fd, _STATUS_BYTES_MAX) if ready else b""
            text += piece
            # bwrap dies if this side closes before its last line.
            if b"}" in text or not piece:
                match = re.search(rb'"child-pid": (\d+)', text)
                return int(match[1]) if match else None

    def open(self) -> None:
        """Let the command run."""
        with suppress(BrokenPipeError):
            os.write(self._block_fd, b"x")

    def close(self) -> None:
        """Close this side of the pipes."""
        os.close(self._info_fd)
        os.close(self._block_fd)


class StatusPipe:
    """A pipe for the exit status of the command, as opposed to that of bwrap."""

    def __init__(self) -> None:
        self._read_fd, self.write_fd = os.pipe()
        """bwrap inherits ``write_fd``; the caller closes its own copy after the start."""
        os.set_blocking(self._read_fd, False)
        self._code: int | None = None
        self._problem = ""

    def fileno(self) -> int:
        """Return the read end, to wait for the first report."""
        return self._read_fd

    def close(self) -> None:
        """Close the read end."""
        os.close(self._read_fd)

    def read_code(self, bwrap_code: int) -> int:
        """Return the exit status of the command after bwrap has ended; negative if a signal ended
        it.

        Raises:
            InfraError: the command was never run.
        """
        if self._code is None:
            self._code = self._reported_code()
        if self._problem:
            raise InfraError(f"cannot start the box: {self._problem}")
        if self._code is not None:
            return self._code
        if bwrap_code < 0:
            raise InfraError("the box was killed from outside")
        # An agent that kills every process inside also kills the inner bwrap, which then reports
        # nothing.
        if bwrap_code > 128:
            return bwrap_code
        raise InfraError("bwrap could not start the box; run `fumehood doctor` for the reason")

    def _reported_code(self) -> int | None:
        try:
            text = os.read(self._read_fd, _STATUS_BYTES_MAX).decode()
        except BlockingIOError:
            return None
        fields = {name: value for status in _documents(text) for name, value in status.items()}
        self._problem = fields.get("problem", "")
        return fields.get("exit-code")


def _documents(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.strip():
            yield json.loads(line)


def _prlimit(limits: Limits, *, has_group: bool) -> tuple[str, ...]:
    return (
        _tool("prlimit"),
        f"--nproc={limits.processes}",
        f"--fsize={limits.file_bytes}",
        f"--nofile={limits.open_files}",
        *(() if has_group else (f"--data={limits.memory_bytes}",)),
        "--core=0",
        f"--sigpending={TIMERS_MAX}",
        "--",
    )


def _setpriv(user: int) -> tuple[str, ...]:
    return (
        *(_tool("setpriv"), "--reuid", str(user), "--regid", str(user)),
        *("--clear-groups", "--inh-caps=-all", "--"),
    )


@cache
def _tool(name: str) -> str:
    return shutil.which(name) or name


PYTHON_PREFIX = "/opt/python"
"""Folder inside with this Python, unless it is part of /usr."""
PACKAGES_FOLDER = "/opt/packages"
"""Folder inside with the SDK."""

_TOP_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_FILES = ("/etc/ld.so.cache", "/etc/alternatives")


@dataclass(frozen=True, slots=True)
class View:
    """Parts of the host, shown read-only."""

    mounts: tuple[Mount, ...]
    links: tuple[tuple[str, str], ...]
    """Target and path of each symbolic link."""
    hidden: tuple[str, ...]
    """Folders inside the mounts that are shown empty, such as other installed packages."""
    path: str
    """Search path for commands."""
    library_path: str
    """Search path of the dynamic linker; empty if it needs none."""

    def with_mounts(self, mounts: Iterable[Mount]) -> View:
        """Return this view with more mounts."""
        return View((*self.mounts, *mounts), self.links, self.hidden, self.path, self.library_path)

    def bwrap_arguments(self, private: Mapping[Path, Path]) -> Iterator[str]:
        """Yield the arguments of bwrap for this view; ``private`` replaces sources of mounts."""
        for folder in self._folders_between():
            yield from ("--dir", folder)
        for target, place in self.links:
            yield from ("--symlink", target, place)
        for mount in self.mounts:
            yield from ("--ro-bind", str(private.get(mount.source, mount.source)), mount.target)
        for folder in self.hidden:
            yield from ("--tmpfs", folder, "--remount-ro", folder)

    def _folders_between(self) -> list[str]:
        # bwrap also creates missing parents, but with a mode that only their owner may enter.
        parents = {
            str(parent) for mount in self.mounts for parent in PurePosixPath(mount.target).parents
        }
        shown = {mount.target for mount in self.mounts} | {"/"}
        return sorted(parents - shown)

    def holds_command(self, name: str) -> bool:
        """Return whether ``name``, a path or a name on the search path, can be executed inside."""
        if "/" in name:
            return self._is_executable(PurePosixPath("/", name))
        return any(
            self._is_executable(PurePosixPath(folder, name)) for folder in self.path.split(":")
        )

    def _is_executable(self, inside: PurePosixPath) -> bool:
        at_host = self._at_host(inside)
        return at_host is not None and at_host.is_file() and os.access(at_host, os.X_OK)

    def _at_host(self, inside: PurePosixPath) -> Path | None:
        for target, place in self.links:
            if inside.is_relative_to(place):
                inside = PurePosixPath("/", target) / inside.relative_to(place)
        for mount in sorted(self.mounts, key=lambda mount: len(mount.target), reverse=True):
            if inside.is_relative_to(mount.target):
                return mount.source / inside.relative_to(mount.target)
        return None


def host_view() -> View:
    """Return the smallest view of this host that can run this Python."""
    prefix = Path(sys.base_prefix).resolve()
    in_usr = prefix == Path("/usr")
    inside = "/usr" if in_usr else PYTHON_PREFIX
    folders = [Path(top) for top in _TOP_FOLDERS if Path(top).exists()]
    mounts = [Mount(Path("/usr"), "/usr")]
    mounts += [Mount(folder, str(folder)) for folder in folders if not folder.is_symlink()]
    mounts += [Mount(Path(file), file) for file in _FILES if Path(file).exists()]
    if not in_usr:
        mounts.append(Mount(prefix, PYTHON_PREFIX))
    return View(
        mounts=tuple(mounts),
        links=tuple(
            (str(folder.readlink()), str(folder)) for folder in folders if folder.is_symlink()
        ),
        hidden=tuple(_hidden_folders(prefix, inside)),
        path="/usr/bin:/bin" if in_usr else f"{PYTHON_PREFIX}/bin:/usr/bin:/bin",
        library_path=f"{PYTHON_PREFIX}/lib"
        if not in_usr and any(prefix.glob("lib/libpython*.so*"))
        else "",
    )


def _hidden_folders(prefix: Path, inside: str) -> Iterator[str]:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folders = [
        (prefix / "lib" / version / "site-packages", f"{inside}/lib/{version}/site-packages"),
        (Path("/usr/lib/python3/dist-packages"), "/usr/lib/python3/dist-packages"),
        (Path("/usr/local"), "/usr/local"),
        (Path("/usr/src"), "/usr/src"),
        # A task can ask for what the documentation of Python states.
        (Path("/usr/share/doc"), "/usr/share/doc"),
    ]
    for at_host, shown in folders:
        if at_host.is_dir():
            yield shown
