"""Gives each box a user, private copies of the host's files, and the sockets of its seat.

Two boxes that see the same inode can exchange data through it: by locks, by inotify, by what is in
the page cache, by link counts. A box therefore gets copies. A copy also hides the path of the
original in /proc/self/mountinfo.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from fumehood.core.errors import InfraError, InputError
from fumehood.core.user_ids import BOX_UIDS
from fumehood.engines.box_users import BoxUsers
from fumehood.engines.engine import Mount
from fumehood.engines.ownership import owner_labels
from fumehood.engines.records import FolderRecords

_FICLONE = 0x4004_9409
"""Shares the blocks of a file, but not its inode and its page cache. Source: ioctl_ficlone(2)."""
_NO_REFLINK = (errno.EOPNOTSUPP, errno.EINVAL, errno.EXDEV, errno.ENOTTY, errno.ENOSYS)
_SOCKET_MODE = 0o600
NOT_COPIED = frozenset({"__pycache__"})
"""Names of folders and files that boxes do not get: code that differs from its source."""


class BoxFiles:
    """The private files of one box, in a folder of this user that is removed with the box."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        """Make nothing yet; ``labels`` name the owner."""
        self._labels = labels
        self._records = FolderRecords()
        self._folder: Path | None = None
        self._count = 0

    def write(self, content: bytes, mode: int = 0o444) -> Path:
        """Write a file of the box and return its path.

        Raises:
            InfraError: it cannot be written.
        """
        path = self._next()
        try:
            path.write_bytes(content)
            path.chmod(mode)
        except OSError as error:
            raise InfraError(f"cannot write a file of a box: {path}: {error.strerror}") from error
        return path

    def folder(self) -> Path:
        """Make an empty folder of the box.

        Raises:
            InfraError: it cannot be made.
        """
        path = self._next()
        path.mkdir(mode=0o755)
        return path

    def copies(self, mounts: Iterable[Mount]) -> tuple[Mount, ...]:
        """Copy the sources of mounts; links are copied as links, except a source itself.

        Raises:
            InputError: a source cannot be read.
            InfraError: the folder cannot be made.
        """
        return tuple(Mount(self._copy(mount.source), mount.target) for mount in mounts)

    def remove(self) -> None:
        """Remove the files; has no effect if there are none."""
        if self._folder is not None:
            self._records.remove(self._folder)

    def _copy(self, source: Path) -> Path:
        target = self._next()
        try:
            if source.is_dir():
                shutil.copytree(
                    source, target, symlinks=True, copy_function=_copy_file, ignore=_left_out
                )
            else:
                _copy_file(str(source), str(target))
        except shutil.Error as error:
            raise InputError(f"cannot copy {source} for a box: {error.args[0][0][2]}") from error
        except OSError as error:
            raise InputError(f"cannot copy {source} for a box: {error.strerror}") from error
        return target

    def _next(self) -> Path:
        if self._folder is None:
            self._folder = self._records.make(self._labels)
        self._count += 1
        return self._folder / str(self._count)


def _copy_file(source: str, target: str) -> str:
    """Copy content and mode of a file, sharing blocks where the file system can."""
    with open(source, "rb") as reader, open(target, "xb") as writer:
        try:
            fcntl.ioctl(writer, _FICLONE, reader.fileno())
        except OSError as error:
            if error.errno not in _NO_REFLINK:
                raise
            shutil.copyfileobj(reader, writer)
        os.fchmod(writer.fileno(), stat.S_IMODE(os.fstat(reader.fileno()).st_mode) & 0o777)
    return target


def _left_out(folder: str, names: list[str]) -> set[str]:
    """Return the names that are not copied: pipes, sockets, devices, and compiled Python."""
    usual = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)
    modes = {name: os.lstat(os.path.join(folder, name)).st_mode for name in names}
    special = {name for name, mode in modes.items() if not any(test(mode) for test in usual)}
    return special | (NOT_COPIED & set(names))


def give_sockets(folder: Path, user: int) -> None:
    """Let only ``user`` connect to the sockets in the folder of a seat. Needs root.

    The service that made the folder parses messages of agents, so links are not followed.

    Raises:
        InfraError: a socket cannot be changed.
    """
    try:
        # If the service has ended, its sockets are gone, and the box cannot connect.
        with suppress(FileNotFoundError):
            folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                for name in os.listdir(folder_fd):
                    _give(name, folder_fd, user)
            finally:
                os.close(folder_fd)
    except OSError as error:
        raise InfraError(f"cannot give the sockets in {folder} away: {error.strerror}") from error


def _give(name: str, folder_fd: int, user: int) -> None:
    # The entry may be replaced meanwhile; the descriptor names one file.
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder_fd)
    try:
        if stat.S_ISSOCK(os.fstat(handle).st_mode):
            os.chown(f"/proc/self/fd/{handle}", user, user)
            os.chmod(f"/proc/self/fd/{handle}", _SOCKET_MODE)
    finally:
        os.close(handle)


class HeldByBox:
    """What one box holds on the host until it is gone: a user and files."""

    def __init__(self, labels: Mapping[str, str], users: Sequence[int] = BOX_UIDS) -> None:
        """Hold nothing yet.

        Args:
            labels: name the owner; empty ones name this process.
            users: IDs of which the box gets one.
        """
        self.labels = dict(labels) or owner_labels("")
        self.files = BoxFiles(self.labels)
        self._users = BoxUsers(users=users)
        self._user: int | None = None
        self._others = ExitStack()

    def user(self) -> int:
        """Return the user of the box, which no other box has; reserve it first if necessary.

        Raises:
            InfraError: there is none.
        """
        if self._user is None:
            self._user = self._users.reserve(self.labels)
        return self._user

    def on_release(self, function: Callable[[], object]) -> None:
        """Call a function before the user is released, the last one first."""
        self._others.callback(function)

    def release(self) -> None:
        """Remove the files and release the user; call it after the box is gone.

        Raises:
            InfraError: a process of the box is left. A later run tries again.
        """
        self._others.close()
        self.files.remove()
        if self._user is not None:
            self._users.release(self._user)


def users_with(users: bytes, user: int) -> bytes:
    """Return ``users``, the content of /etc/passwd, with a box's user, whose name programs then
    find."""
    return users.rstrip(b"\n") + b"\nbox:x:%d:%d::/tmp:/sbin/nologin\n" % (user, user)
