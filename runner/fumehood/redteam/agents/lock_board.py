"""Two boxes exchange a message through record locks on an inode that both can open.

A read lock needs no right to write, and its start is a number of 63 bits that every process with
the same inode can query.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time

import attempts
from attempts import GIVEN, SOCKET, attempt, say

FLOCK = "hhqqi"
"""Source: struct flock, fcntl(2), on processors of 64 bits."""
SLOT_BITS = 40
HOLD_S, POLL_S = 8.0, 0.2
EVENTS = "an event descriptor"
"""All of them have the same inode."""
FILES = (
    os.path.join(os.path.dirname(SOCKET), "bin", "fumehood"),
    __file__,
    attempts.__file__,
    os.__file__,
    "/etc/ld.so.cache",
    "/etc/passwd",
    "/usr/lib/os-release",
    "/dev/zero",
    "/dev/null",
    "/proc/self/exe",
    "/proc/self/fd/0",
    "/proc/self/ns/time",
    "/proc/self/ns/user",
    EVENTS,
)


def open_inode(path: str) -> int:
    """Return a descriptor of a file or of an event."""
    return os.eventfd(0) if path == EVENTS else os.open(path, os.O_RDONLY)


def write(path: str) -> str:
    """Hold locks whose places say the message."""
    message = GIVEN["message"].encode()
    descriptor = open_inode(path)
    for slot in range(len(message) // 4):
        (word,) = struct.unpack_from(">I", message, 4 * slot)
        request = struct.pack(FLOCK, fcntl.F_RDLCK, os.SEEK_SET, (slot << SLOT_BITS) + word, 1, 0)
        fcntl.fcntl(descriptor, fcntl.F_SETLK, request)
    return ""


def read(path: str) -> str:
    """Ask for the places of the locks of others."""
    heard = b""
    descriptor = open_inode(path)
    try:
        for slot in range(4):
            request = struct.pack(
                FLOCK, fcntl.F_WRLCK, os.SEEK_SET, slot << SLOT_BITS, 1 << SLOT_BITS, 0
            )
            kind, _, start, length, _ = struct.unpack(
                FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, request)
            )
            if kind == fcntl.F_UNLCK or length != 1:
                return ""
            heard += struct.pack(">I", (start - (slot << SLOT_BITS)) & 0xFFFF_FFFF)
    finally:
        os.close(descriptor)
    return heard.decode("ascii", "replace")


if GIVEN.get("role") == "write":
    for path in FILES:
        attempt(f"locks on {path}", write, path)
    time.sleep(HOLD_S)
else:
    deadline = time.monotonic() + HOLD_S
    heard = ""
    while not heard and time.monotonic() < deadline:
        for path in FILES:
            try:
                heard = heard or read(path)
            except OSError:
                continue
        time.sleep(POLL_S)
    say(f"tried to read locks: {heard or 'none'}")
