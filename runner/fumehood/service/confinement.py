"""What the service gives up before it hears a word from a box.

It reads what hostile code sends, so it keeps only what that takes: no rights of root, no way to any other
rights, no core files that would hold what an agent must not know. It needs many descriptors and says so to
the kernel, and asks to be the one that goes when memory runs out: its episodes are tried again, an
orchestrator's run is not.
"""

from __future__ import annotations

import ctypes
import os
import resource
import stat
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.harness_modes.registry import load_all

SERVICE_UID = 65533
"""User and group of a service that root started. Not "nobody": that is what boxes out of namespaces are to
the host, and they must not be the service."""

_FIRST_TO_GO = "500"
"""Of -1000 to 1000. Source: proc(5), oom_score_adj."""
_PR_SET_NO_NEW_PRIVS = 38
_FOUND_LATE = (
    "concurrent.futures.thread",
    "encodings.idna",
    "encodings.unicode_escape",
    "traceback",
)
"""Parts of Python that are looked for on disk at their first use, when it may be too late."""


def confine(directory: Path) -> None:
    """Give up what is not needed; to be called by the main thread, before there is another.

    Args:
        directory: of the sockets; becomes the property of the user that this process becomes.

    Raises:
        InputError: that user could not get there.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with suppress(OSError):  # Not every kernel lets everybody ask.
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
    if os.geteuid() == 0:
        _give_root_up(directory)
    ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _give_root_up(directory: Path) -> None:
    closed = [folder for folder in directory.parents if not folder.stat().st_mode & stat.S_IXOTH]
    if closed:
        raise InputError(
            f"the service gives root up and could not enter {closed[0]} any more; choose a folder that "
            "others may enter, or set TMPDIR to one"
        )
    _load_what_root_alone_may_read()
    os.chown(directory, SERVICE_UID, SERVICE_UID)
    os.setgroups([])
    os.setresgid(SERVICE_UID, SERVICE_UID, SERVICE_UID)
    os.setresuid(SERVICE_UID, SERVICE_UID, SERVICE_UID)


def _load_what_root_alone_may_read() -> None:
    load_all()
    for name in _FOUND_LATE:
        import_module(name)
