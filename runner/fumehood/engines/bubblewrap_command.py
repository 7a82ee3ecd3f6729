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
from collections.abc import Iterator, Mapping, Sequence

from fumehood.core.errors import InfraError
from fumehood.engines.bubblewrap_view import View
from fumehood.engines.engine import BOX_UID, Limits

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
