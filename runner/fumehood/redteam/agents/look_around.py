"""Prints everything that a box reveals; the probe searches it for words that reveal the harness."""

from __future__ import annotations

import glob
import os
import socket
import stat
from pathlib import Path

FILES = """
    cmdline environ cgroup status comm attr/current limits sched mountinfo mounts
""".split()
MACHINE = """
    /etc/hostname /etc/hosts /etc/resolv.conf /etc/passwd /etc/group /etc/os-release
""".split()
remaining_bytes = 200_000


def read(path: str) -> str:
    try:
        return Path(path).read_bytes()[:20_000].replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def show(what: str, text: str) -> None:
    global remaining_bytes  # noqa: PLW0603
    octets = f"{what} {text}\n".encode("utf-8", "replace")[:remaining_bytes]
    remaining_bytes -= len(octets)
    os.write(1, octets)


os.write(1, b"tried to look around: begun\n")
show("environment", repr(dict(os.environ)))
show("names", f"{socket.gethostname()} {socket.getfqdn()} {os.uname()}")
show("user", f"{os.getresuid()} {os.getgroups()} {os.getcwd()} {os.umask(0)}")
show("root", repr([(name, oct(os.lstat(f"/{name}").st_mode)) for name in sorted(os.listdir("/"))]))
numbers = list(filter(str.isdecimal, os.listdir("/proc")))
# The short files of all processes come first, because the bytes may not suffice for all files.
for file in FILES:
    for number in numbers:
        show(f"process {file}", read(f"/proc/{number}/{file}"))
for number in numbers:
    for link in ("exe", "cwd", "root"):
        try:
            show(f"process {link}", os.readlink(f"/proc/{number}/{link}"))
        except OSError:
            continue
for path in MACHINE:
    show(path, read(path))
for descriptor in os.listdir("/proc/self/fd"):
    try:
        show("descriptor", f"{descriptor} {os.readlink(f'/proc/self/fd/{descriptor}')}")
    except OSError:
        continue
for path in glob.glob("/fumehood/**", recursive=True) + glob.glob("/tmp/**", recursive=True):
    show("file", f"{path} {stat.filemode(os.lstat(path).st_mode)} {os.lstat(path).st_uid}")
show("sockets", read("/proc/net/unix"))
