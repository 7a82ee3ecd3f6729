"""Chooses the folder of this user's engine state: records of owners, sockets, files of boxes.

It is never a folder that every user can write, such as /tmp, unless no other exists: there, another
user can make the folder first. In every place, the folder is used only if this user owns it and no
other user can write it.

The places, in this order: the user's runtime folder, for root /run, the user's state folder, for
root /var/lib, and memory, for a user without a writable home.
Source: XDG Base Directory Specification 0.8; Filesystem Hierarchy Standard 3.0, sections 3.15, 5.8.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from fumehood.core.errors import InfraError

NAME = "fumehood"
SOCKET_PATH_BYTES_MAX = 107
"""Source: unix(7), sun_path without its terminating zero."""
BELOW_BYTES = len("/0123abcd/0123abcd/0123abcd/") + 32 + len("/grpc.sock")
"""A service, an episode and a seat with the longest name, below the state folder."""
_RUN, _STATE, _MEMORY = Path("/run"), Path("/var/lib"), Path("/dev/shm")


def state_folder(kind: str) -> Path:
    """Return the folder of this user's records of a kind, such as ``sessions``; it may not exist.

    Raises:
        InfraError: no place is usable.
    """
    return _first_usable(_places()) / kind


def machine_folder(kind: str) -> Path:
    """Return the folder of the records of ``kind`` that all processes of this user share, in every
    environment.

    Raises:
        InfraError: no place is usable.
    """
    return _first_usable(_fixed_places()) / kind


def open_folder() -> Path:
    """Return the folder in which folders with sockets and files of boxes are made.

    Its path is short enough for sockets. Programs in it can be executed. If root runs this, other
    users can enter it, because services and boxes have other users.

    Raises:
        InfraError: no place is usable.
    """
    return _first_usable(_places(), for_boxes=True)


def disk_folder() -> Path:
    """Return the folder for folders of boxes that are too large for memory; only root has one.

    Raises:
        InfraError: it is not usable.
    """
    return _first_usable(iter((_STATE / NAME,)))


def temporary_folder() -> Path:
    """Return the folder in which folders with temporary files of services are made, such as files
    of databases: on a disk if one is usable, because they can be too large for memory.

    It is in the user's state folder; for root in /var/lib, unless XDG_STATE_HOME is set. Its path
    is short enough for sockets, and other users can enter it if root runs this.

    Raises:
        InfraError: no place is usable.
    """
    is_system = os.geteuid() == 0 and not os.environ.get("XDG_STATE_HOME")
    on_disk = iter((_STATE / NAME,)) if is_system else _home_places()
    return _first_usable(chain(on_disk, _places()), for_boxes=True)


def known_folders() -> frozenset[Path]:
    """Return the folders that :func:`open_folder`, :func:`disk_folder` and
    :func:`temporary_folder` can return, whether they exist or not."""
    return frozenset(_places())


def claim_folder(folder: Path) -> None:
    """Make a folder for this user only, or check that it is one.

    Raises:
        InfraError: it cannot be made, or another user owns it or has access to it.
    """
    problem = _problem(folder, others_may=0)
    if problem:
        raise InfraError(f"{problem}; remove it, or set XDG_RUNTIME_DIR to a folder of your own")


def _places() -> Iterator[Path]:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_absolute():
        yield Path(runtime, NAME)
    yield from _fixed_places()


def _fixed_places() -> Iterator[Path]:
    user = os.geteuid()
    if user == 0:
        yield _RUN / NAME
    elif (_RUN / "user" / str(user)).is_dir():
        yield _RUN / "user" / str(user) / NAME
    yield from _home_places()
    if user == 0:
        yield _STATE / NAME
    yield _MEMORY / f"{NAME}-{user}"


def _home_places() -> Iterator[Path]:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    if Path(state).is_absolute():  # Not if there is no HOME and no entry in the user database.
        yield Path(state, NAME)


def _first_usable(places: Iterator[Path], *, for_boxes: bool = False) -> Path:
    problems = []
    for place in places:
        problem = _problem(place, others_may=0o055) or (_unfit(place) if for_boxes else "")
        if not problem:
            return place
        problems.append(problem)
    raise InfraError(
        f"no folder for the state of engines: {'; '.join(problems)}; "
        "set XDG_RUNTIME_DIR to a folder of your own"
    )


def _problem(folder: Path, *, others_may: int) -> str:
    """Make a folder and return why it cannot be used; empty if it can."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.path.lexists(folder):
            folder.mkdir(mode=0o700 | others_may & 0o011, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        return f"cannot make {folder} ({error.strerror})"
    is_private = not stat.S_IMODE(status.st_mode) & 0o077 & ~others_may
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or not is_private:
        return f"other users have access to {folder}"
    if not os.access(folder, os.W_OK):
        return f"cannot write {folder}"
    return ""


def _unfit(folder: Path) -> str:
    if len(os.fsencode(folder)) + BELOW_BYTES > SOCKET_PATH_BYTES_MAX:
        return f"{folder} is too long for sockets"
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return f"programs in {folder} cannot be executed (noexec)"
    if os.geteuid() == 0 and not all(_can_enter(place) for place in (folder, *folder.parents)):
        return f"other users cannot enter {folder}"
    return ""


def _can_enter(folder: Path) -> bool:
    return bool(folder.stat().st_mode & stat.S_IXOTH)
