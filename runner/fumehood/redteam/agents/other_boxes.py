"""Looks for the box of the agent, its seat, the model and other boxes from inside a workspace."""

from __future__ import annotations

import ctypes
import glob
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from attempts import GIVEN, SOCKET, attempt

SEAT = GIVEN.get("seat", os.path.dirname(SOCKET))
HOST, _, PORT = GIVEN.get("model", "127.0.0.1:1").removeprefix("http://").partition(":")
ROOTS = ("", "/proc/1/root", "/proc/self/root", "/fumehood/../..", "/fumehood/bin/../../..")
SHARED_MEMORY_KEY = 0x66756D65
ELSEWHERE = ("/var/lib/docker", "/run/docker", "/run/containerd", "/run/crun", "/run/runc")


def places() -> Iterator[str]:
    for name in ("grpc.sock", "http.sock"):
        for root in ROOTS:
            yield f"{root}{SEAT}/{name}"
        yield f"/fumehood/{name}"
        yield f"/proc/1/cwd/{name}"
        yield from glob.glob(f"/proc/[0-9]*/root/fumehood/{name}")


def connect(path: str) -> str:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
    return "connected"


def ask_model() -> str:
    with socket.create_connection((HOST, int(PORT)), timeout=2) as connection:
        connection.sendall(b"GET /v1/models HTTP/1.1\r\nhost: model\r\nconnection: close\r\n\r\n")
        return connection.recv(64).decode("ascii", "replace")


def abstract_sockets() -> str:
    lines = Path("/proc/net/unix").read_text("ascii", "replace").splitlines()
    return ",".join(line.split()[-1] for line in lines if line.split()[-1].startswith("@"))


def segments() -> str:
    lines = Path("/proc/sysvipc/shm").read_text("ascii").splitlines()[1:]
    return f"{len(lines)} segments" if lines else ""


def other_processes() -> str:
    """Return the processes whose root folder is not that of this one."""
    own = os.stat("/proc/self/root/")
    others = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            root = os.stat(f"/proc/{name}/root/")
        except OSError:
            continue
        if (root.st_dev, root.st_ino) != (own.st_dev, own.st_ino):
            others.append(name)
    return ",".join(others)


def enter() -> str:
    """Enter the namespaces of another process."""
    for name in filter(str.isdecimal, os.listdir("/proc")):
        for kind in ("net", "mnt", "pid", "ipc"):
            path = f"/proc/{name}/ns/{kind}"
            if os.path.exists(path) and os.readlink(path) != os.readlink(f"/proc/self/ns/{kind}"):
                with open(path, "rb") as namespace:
                    if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0) == 0:
                        return path
    return ""


for place in dict.fromkeys(places()):
    attempt(f"the seat at {place}", connect, place)
attempt("the model", ask_model)
attempt("abstract sockets of other boxes", abstract_sockets)
attempt("shared memory of other boxes", segments)
attempt("processes of other boxes", other_processes)
attempt("namespaces of other boxes", enter)
for folder in ELSEWHERE:
    attempt(f"files of boxes in {folder}", os.listdir, folder)
