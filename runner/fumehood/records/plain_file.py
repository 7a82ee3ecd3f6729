"""Reads what stands in a folder that somebody else may have written: plain files, and nothing else.

A link would lead out of the folder, a pipe never ends, a device has no end: none of them is opened for long.
Knows nothing about what is in a run folder.
"""

from __future__ import annotations

import errno
import os
import stat
from hashlib import file_digest
from io import BufferedReader
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_plain(path: Path) -> BufferedReader:
    """Open a file for reading.

    Raises:
        OSError: there is none, or it is a link, a folder, a pipe or a device.
    """
    descriptor = os.open(path, _FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return os.fdopen(descriptor, "rb")


def read_plain(path: Path) -> bytes:
    """Return what a file holds; raises like :func:`open_plain`."""
    with open_plain(path) as file:
        return file.read()


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a plain file, in hex, piece by piece; empty where there is none to be read."""
    try:
        with open_plain(path) as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
