"""Leaves links, pipes and sparse files that a careless collector would follow, unpack or wait
for."""

from __future__ import annotations

import os
import socket

from attempts import GIVEN, attempt, say

SECRET, WRITABLE = GIVEN.get("file", "/etc/shadow"), GIVEN.get("writable", "/etc/passwd")


def make(what: str, maker: object) -> None:
    """Create a special file; the agent may do this in its /tmp."""
    try:
        maker()  # type: ignore[operator]
        say(f"tried {what}: it lies there")
    except OSError as error:
        say(f"tried {what}: {error.strerror}")


def sparse() -> None:
    with open("/tmp/sparse", "wb") as file:
        file.truncate(1 << 40)


def listen() -> None:
    socket.socket(socket.AF_UNIX).bind("/tmp/result.sock")


def nest() -> None:
    os.chdir("/tmp")
    for _ in range(500):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    os.chdir("/tmp")


make("a link to a file of the host", lambda: os.symlink(SECRET, "/tmp/result.json"))
make("a link to itself", lambda: os.symlink("/tmp/loop", "/tmp/loop"))
make("a pipe without a writer", lambda: os.mkfifo("/tmp/output"))
make("a file of a terabyte", sparse)
make("a socket", listen)
make("folders five hundred deep", nest)
make("a name with a line's end", lambda: os.close(os.open("/tmp/a\nb\r\x1b[31m", os.O_CREAT)))


def leave_output() -> str:
    os.dup2(os.open(WRITABLE, os.O_WRONLY | os.O_APPEND), 2)
    os.write(2, b"collected\n")
    return "opened"


attempt("leave output to a file of the host", leave_output)
