"""Runs setuid programs and checks whether they become root."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from attempts import attempt

FOLDERS = ("/usr/bin", "/usr/sbin", "/usr/lib/openssh", "/usr/lib/dbus-1.0", "/usr/libexec", "/opt")
PROGRAMS_MAX = 12


def setuid_programs() -> Iterator[str]:
    for folder in FOLDERS:
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
                yield path


def run(path: str) -> str:
    """Start the program, which may wait for input, and return its user."""
    program = subprocess.Popen(
        [path], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(10):
            status = Path(f"/proc/{program.pid}/status").read_text(encoding="utf-8")
            users = [line for line in status.splitlines() if line.startswith("Uid:")]
            if users and users[0].split()[2] == "0" and os.geteuid() != 0:
                return users[0]
            time.sleep(0.01)
    finally:
        program.kill()
        program.wait()
    return ""


def make_own() -> str:
    """Create a setuid program, and try to change its owner."""
    with open("/tmp/own", "wb") as file:
        file.write(b"#!/bin/sh\nid\n")
    os.chown("/tmp/own", 0, 0)
    os.chmod("/tmp/own", 0o4755)
    return "made"


for found in list(setuid_programs())[:PROGRAMS_MAX]:
    attempt(f"root through {found}", run, found)
attempt("a program of root's", make_own)
