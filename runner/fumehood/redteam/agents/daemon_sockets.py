"""Searches for sockets of daemons and sends them commands."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator

from attempts import GIVEN, SOCKET, attempt

WELL_KNOWN = """
    /var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock /run/podman/podman.sock
    /run/dbus/system_bus_socket /run/systemd/private /run/crio/crio.sock /run/udev/control
""".split()
OWN = os.path.dirname(SOCKET)
"""Folder of the agent's seat."""
SKIPPED = ("proc", "sys", "usr", "lib", "opt")
"""Top-level folders without sockets."""
ROOTS = ("", "/proc/1/root", "/proc/self/root", "/proc/1/cwd", "/host", "/hostfs")


def sockets() -> Iterator[str]:
    for folder, below, files in os.walk("/"):
        below[:] = [name for name in below if folder != "/" or name not in SKIPPED]
        for name in files:
            path = os.path.join(folder, name)
            try:
                if stat.S_ISSOCK(os.lstat(path).st_mode) and not os.path.samefile(folder, OWN):
                    yield path
            except OSError:
                continue


def talk(path: str) -> str:
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(2)
        s.connect(path)
        s.sendall(b"GET /version HTTP/1.0\r\n\r\n")
        return f"connected: {s.recv(200)!r}"


for path in {GIVEN.get("daemon", WELL_KNOWN[0]), *WELL_KNOWN}:
    for root in ROOTS:
        attempt(f"the daemon at {root}{path}", talk, f"{root}{path}")
for path in sockets():
    attempt(f"the socket {path}", talk, path)
attempt(
    "groups that a daemon trusts",
    lambda: [group for group in os.getgroups() if group not in (65534, os.getgid())],
)
