"""Atomic writes, and safe reads from folders that other users may have written."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from io import BufferedReader
from pathlib import Path

MANY_FILES = 100
_PART_BYTES = 1 << 16
_NO_LINKS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FLAGS = os.O_RDONLY | _NO_LINKS


def open_plain(path: str | Path) -> BufferedReader:
    """Open a regular file for reading.

    A link could leave the folder, and a pipe or device may never end, so both are rejected.

    Raises:
        OSError: the file does not exist, or is a link, a folder, a pipe or a device.
    """
    return os.fdopen(_descriptor_of(path)[0], "rb")


def _descriptor_of(path: str | Path) -> tuple[int, int]:
    """Open a regular file, and return its descriptor and its size in bytes."""
    descriptor = os.open(path, _FLAGS)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return descriptor, status.st_size


def read_plain(path: str | Path) -> bytes:
    """Return the content of a regular file; raises like :func:`open_plain`."""
    with open_plain(path) as file:
        return file.read()


def read_part(path: str | Path, start: int, size: int) -> bytes:
    """Return ``size`` bytes of a regular file from byte ``start``.

    Raises:
        OSError: as :func:`open_plain`, or the file is too short.
    """
    # A file object takes three times as long, and a large run has thousands of parts.
    descriptor, file_bytes = _descriptor_of(path)
    try:
        # A buffer of the stated size would be allocated before anything is read.
        if start + size > file_bytes:
            raise OSError(errno.ENODATA, "the file is too short", str(path))
        return os.pread(descriptor, size, start)
    finally:
        os.close(descriptor)


def digest_file(path: str | Path) -> str:
    """Return the SHA-256 of a regular file in hex; empty if it cannot be read."""
    try:
        with open_plain(path) as file:
            digest = sha256()
            # ``hashlib.file_digest`` fills 256 KiB with zeros first, for each small file.
            while part := file.read(_PART_BYTES):
                digest.update(part)
            return digest.hexdigest()
    except OSError:
        return ""


def open_no_link(path: str | Path, flags: int) -> int:
    """Open a private file to write it, as the ``opener`` of ``open``; rejects links and pipes.

    A link in the folder of another user could name any file of this user.
    """
    return os.open(path, flags | _NO_LINKS, 0o600)


def open_export(path: str | Path, flags: int) -> int:
    """Open a file that the user exports, with the permissions of the umask; rejects links."""
    return os.open(path, flags | _NO_LINKS, 0o666)


def make_private_folder(path: Path) -> None:
    """Make a folder that only this user can enter; its missing parents follow the umask."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def file_at(path: Path) -> Path | None:
    """Return the part of the path of a folder that is no folder, such as a file; None if there
    is none."""
    parts = (path, *path.parents)
    return next((part for part in parts if os.path.lexists(part) and not os.path.isdir(part)), None)


def write_export(path: Path, content: bytes) -> None:
    """Write a regular file that the user exports; raises like :func:`write_plain`."""
    with open(path, "wb", opener=open_export) as file:
        file.write(content)


def write_plain(path: Path, content: bytes) -> None:
    """Write a private regular file.

    Raises:
        OSError: the file cannot be written, or is a link.
    """
    with open(path, "wb", opener=open_no_link) as file:
        file.write(content)


def write_whole(path: Path, content: str) -> None:
    """Replace a file atomically; after a crash it has the old or the new content."""
    partial = path.with_name(path.name + ".partial")
    try:
        with open(partial, "w", encoding="utf-8", opener=open_no_link) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def force_to_disk(path: Path) -> None:
    """Flush a file to the disk if it exists."""
    with suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def force_all_to_disk(folder: Path, files: Sequence[str]) -> None:
    """Flush files in a folder to the disk, if they exist; their paths are relative to it.

    Many files are flushed together with all others of their file system, which takes less time than
    one flush for each.
    """
    # syncfs(2) reports errors since Linux 5.8; Python has no function for it.
    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if len(files) < MANY_FILES or syncfs is None:
        for file in files:
            force_to_disk(folder / file)
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(descriptor)


def write_or_remove(path: str | Path, content: bytes) -> None:
    """Write a file, or remove it if the disk is full. A power cut may truncate it."""
    try:
        with open(path, "wb", opener=open_no_link) as file:
            file.write(content)
    except OSError:
        Path(path).unlink(missing_ok=True)
        raise


def append_whole(
    path: Path, lines: bytes, size: int | None = None, *, is_flushed: bool = True
) -> int:
    """Append all lines and return the new size; or append nothing.

    Args:
        path: of the file.
        lines: to append.
        size: expected size of the file, bytes; None accepts any.
        is_flushed: whether to flush them to the disk.

    Raises:
        OSError: the disk is full, or the size differs.
    """
    with open(path, "ab", buffering=0, opener=open_no_link) as file:
        before = file.tell()
        if size not in (None, before):
            raise OSError(errno.ESTALE, f"another program removed or changed {path.name}")
        try:
            unwritten = memoryview(lines)
            while unwritten:  # The error that cut a write short is raised by the next write.
                unwritten = unwritten[file.write(unwritten) :]
            if is_flushed:
                os.fsync(file.fileno())
        except OSError:
            file.truncate(before)
            raise
    return before + len(lines)
