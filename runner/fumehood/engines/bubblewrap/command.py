"""The command line that makes a box out of namespaces.

For an ordinary user one bwrap does it all. For root there are two, one in the other: the outer one builds
the view, because only root may be able to read its parts; then root is given up for the user "nobody", who
starts the inner one. Otherwise the agent would be root to the host, if without capabilities, and root's
processes cannot be counted.

What describes the view goes through a file descriptor, because everybody inside can read the command line
of the first process, and the folders of the host are not an agent's business.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fumehood.core.errors import InfraError
from fumehood.engines.engine import BOX_UID, Limits, Mount

_HOSTNAME = "localhost"
_STATUS_BYTES_MAX = 65536

_NAMESPACES = (
    "--unshare-ipc",
    "--unshare-net",
    "--unshare-uts",
    "--unshare-pid",
    "--unshare-cgroup-try",
)
_NOBODY = (
    *("--unshare-user", "--disable-userns"),
    *("--uid", str(BOX_UID), "--gid", str(BOX_UID)),
    *("--cap-drop", "ALL"),
)


def view_arguments(view: View, environment: Mapping[str, str], limits: Limits) -> Iterator[str]:
    """Yield the arguments of the bwrap that builds the view.

    Args:
        view: what is shown.
        environment: set inside, besides the search paths.
        limits: of which the size of /tmp is one.
    """
    yield from _NAMESPACES
    yield from ("--hostname", _HOSTNAME, "--die-with-parent", "--new-session", "--clearenv")
    yield from ("--setenv", "PATH", view.path)
    if view.library_path:
        yield from ("--setenv", "LD_LIBRARY_PATH", view.library_path)
    for name, value in environment.items():
        yield from ("--setenv", name, value)
    yield from view.bwrap_arguments()
    yield from ("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev")
    yield from ("--perms", "1777", "--size", str(limits.tmp_bytes), "--tmpfs", "/tmp")
    yield from ("--remount-ro", "/", "--chdir", "/")


def box_command(
    view_fd: int, status_fd: int, filter_fd: int | None, limits: Limits, command: Sequence[str]
) -> list[str]:
    """Return the whole command line.

    Args:
        view_fd: where bwrap reads the arguments of the view.
        status_fd: where bwrap writes what became of the command.
        filter_fd: where bwrap reads the filter of system calls; None for no filter.
        limits: for each process.
        command: to run inside.
    """
    last: tuple[str, ...] = ("--json-status-fd", str(status_fd))
    if filter_fd is not None:
        last = (*last, "--seccomp", str(filter_fd))
    inside = [*_prlimit(limits), *command]
    if os.geteuid() != 0:
        return [_tool("bwrap"), *_NOBODY, *last, "--args", str(view_fd), "--", *inside]
    kept = ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    outer = [_tool("bwrap"), *kept, "--args", str(view_fd), "--", *_setpriv()]
    return [
        *outer,
        *(_tool("bwrap"), *_NOBODY, *last, "--die-with-parent", "--dev-bind", "/", "/", "--"),
        *inside,
    ]


class StatusPipe:
    """Where bwrap tells the exit status of the command, as opposed to its own."""

    def __init__(self) -> None:
        self._outlet, self.inlet = os.pipe()
        """The inlet is bwrap's; whoever started it closes our copy."""
        os.set_blocking(self._outlet, False)
        self._code: int | None = None

    def close(self) -> None:
        """Close the end we read from."""
        os.close(self._outlet)

    def read_code(self, bwrap_code: int) -> int:
        """Return the exit status of the command, once bwrap has ended; negative for a signal that ended it.

        Raises:
            InfraError: the command was never run.
        """
        if self._code is None:
            self._code = self._told()
        if self._code is not None:
            return self._code
        if bwrap_code < 0:
            raise InfraError("somebody outside killed bwrap, and the box with it")
        if (
            bwrap_code > 128
        ):  # Who kills everybody inside kills the second bwrap too, which would have told.
            return bwrap_code
        raise InfraError("bwrap could not make the box; `fumehood doctor` says what is missing")

    def _told(self) -> int | None:
        try:
            text = os.read(self._outlet, _STATUS_BYTES_MAX).decode()
        except BlockingIOError:
            return None
        codes = [found["exit-code"] for found in _documents(text) if "exit-code" in found]
        return codes[-1] if codes else None


def _documents(text: str) -> Iterator[dict[str, int]]:
    for line in text.splitlines():
        if line.strip():
            yield json.loads(line)


def _prlimit(limits: Limits) -> tuple[str, ...]:
    return (
        _tool("prlimit"),
        f"--nproc={limits.processes}",
        f"--fsize={limits.file_bytes}",
        f"--nofile={limits.open_files}",
        f"--data={limits.memory_bytes}",
        "--core=0",
        "--",
    )


def _setpriv() -> tuple[str, ...]:
    return (
        *(_tool("setpriv"), "--reuid", str(BOX_UID), "--regid", str(BOX_UID)),
        *("--clear-groups", "--inh-caps=-all", "--"),
    )


def _tool(name: str) -> str:
    return shutil.which(name) or name


PYTHON_PREFIX = "/opt/python"
"""Where our Python is shown, unless it lies in /usr anyway."""
PACKAGES_FOLDER = "/opt/packages"
"""Where the SDK is shown."""

_TOP_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_FILES = ("/etc/ld.so.cache", "/etc/alternatives")


@dataclass(frozen=True, slots=True)
class View:
    """Parts of the host, shown read-only."""

    mounts: tuple[Mount, ...]
    links: tuple[tuple[str, str], ...]
    """Target text and place of each symbolic link."""
    hidden: tuple[str, ...]
    """Folders inside the mounts that are shown empty: what else is installed here is not the agent's."""
    path: str
    """Search path for commands."""
    library_path: str
    """For the dynamic linker; empty where it needs none."""

    def with_mounts(self, mounts: Iterable[Mount]) -> View:
        """Return this view with more in it."""
        return View((*self.mounts, *mounts), self.links, self.hidden, self.path, self.library_path)

    def bwrap_arguments(self) -> Iterator[str]:
        """Yield the arguments that make bwrap show it."""
        for folder in self._folders_between():
            yield from ("--dir", folder)
        for target, place in self.links:
            yield from ("--symlink", target, place)
        for mount in self.mounts:
            yield from ("--ro-bind", str(mount.source), mount.target)
        for folder in self.hidden:
            yield from ("--tmpfs", folder, "--remount-ro", folder)

    def _folders_between(self) -> list[str]:
        # bwrap makes missing parents too, but such that only their owner may enter.
        parents = {
            str(parent) for mount in self.mounts for parent in PurePosixPath(mount.target).parents
        }
        shown = {mount.target for mount in self.mounts} | {"/"}
        return sorted(parents - shown)

    def holds_command(self, name: str) -> bool:
        """Tell whether ``name`` can be run inside: an absolute path, or a name on the search path."""
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
        for mount in sorted(self.mounts, key=lambda one: len(one.target), reverse=True):
            if inside.is_relative_to(mount.target):
                return mount.source / inside.relative_to(mount.target)
        return None


def host_view() -> View:
    """Return the least of this host that runs our Python."""
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
        hidden=tuple(_package_folders(prefix, inside)),
        path="/usr/bin:/bin" if in_usr else f"{PYTHON_PREFIX}/bin:/usr/bin:/bin",
        library_path=f"{PYTHON_PREFIX}/lib"
        if not in_usr and any(prefix.glob("lib/libpython*.so*"))
        else "",
    )


def _package_folders(prefix: Path, inside: str) -> Iterator[str]:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    at_host_and_inside = [
        (prefix / "lib" / version / "site-packages", f"{inside}/lib/{version}/site-packages"),
        (Path("/usr/lib/python3/dist-packages"), "/usr/lib/python3/dist-packages"),
        (Path("/usr/local"), "/usr/local"),
        (Path("/usr/src"), "/usr/src"),
    ]
    for at_host, shown in at_host_and_inside:
        if at_host.is_dir():
            yield shown
