"""One box exhausts what the kernel counts for each user, and another box finds it exhausted."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import time
from contextlib import suppress

from attempts import GIVEN, attempt, say

HOLD_S, POLL_S = 8.0, 0.1
PIPE_BYTES = 1 << 20
USUAL_PIPE_BYTES = 1 << 16
MANY = 200
libc = ctypes.CDLL(None, use_errno=True)


def inotify() -> int:
    """Return a new inotify instance.

    Raises:
        OSError: there are too many.
    """
    descriptor = int(libc.inotify_init1(os.O_CLOEXEC))
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return descriptor


def take_inotify() -> str:
    held = []
    for _ in range(MANY):
        held.append(inotify())
    return ""


def take_pipes() -> str:
    for _ in range(MANY):
        writer = os.pipe()[1]
        # Refused near the limit; pipes of the usual size take the rest.
        with suppress(PermissionError):
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return ""


def find_inotify() -> str:
    """Return an error if another box took all instances."""
    try:
        os.close(inotify())
    except OSError as error:
        # A filter that refuses every instance answers ENOSYS.
        return "" if error.errno == errno.ENOSYS else error.strerror or "refused"
    return ""


def find_pipes() -> str:
    ends = os.pipe()
    size = fcntl.fcntl(ends[0], fcntl.F_GETPIPE_SZ)
    for end in ends:
        os.close(end)
    return f"pipes of {size} bytes" if size < USUAL_PIPE_BYTES else ""


if GIVEN.get("role") == "write":
    for take in (take_inotify, take_pipes):
        if os.fork() == 0:
            attempt(f"to {take.__name__.replace('_', ' ')}", take)
            time.sleep(HOLD_S)
            os._exit(0)
    time.sleep(HOLD_S)
else:
    deadline = time.monotonic() + HOLD_S
    found: dict[str, str] = {}
    while time.monotonic() < deadline and len(found) < 2:
        for find in (find_inotify, find_pipes):
            if answer := find():
                found[find.__name__] = answer
        time.sleep(POLL_S)
    say("tried quotas of another box: ended")
    for name, answer in found.items():
        say(f"got an exhausted quota, {name.removeprefix('find_')}: {answer}")
