"""Opens kernel settings, triggers and control groups for writing. Changes nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from attempts import attempt

NAMED = """
    /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/kernel/hotplug
    /proc/sysrq-trigger /proc/sys/vm/panic_on_oom /proc/sys/kernel/ns_last_pid
    /proc/sys/fs/binfmt_misc/register /proc/kcore /sys/kernel/uevent_helper
    /sys/fs/cgroup/release_agent /sys/fs/cgroup/memory/memory.limit_in_bytes
    /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids/pids.max
    /proc/irq/0/smp_affinity
""".split()
READ = """
    /proc/kcore /proc/kallsyms /proc/kmsg /proc/kpageflags /proc/slabinfo /sys/kernel/debug/tracing
""".split()
TOPS = "/proc/sys /sys/fs/cgroup /sys/kernel /sys/module /sys/class /proc/irq".split()
FILES_MAX = 20_000


def write(path: str) -> str:
    """Write the present content again; if it cannot be read, opening for writing counts as
    success."""
    with open(os.open(path, os.O_WRONLY | os.O_NONBLOCK), "wb", buffering=0) as file:
        try:
            with open(path, "rb") as before:
                content = before.read(4096)
        except OSError:
            return "opened"
        file.write(content)
    return "written"


def read(path: str) -> str:
    if os.path.isdir(path):
        return ",".join(os.listdir(path)[:3])
    with open(path, "rb") as file:
        start = file.read(64)
    # The kernel shows addresses as zeros to processes without the privilege.
    return start.hex() if start.strip(b"0 ") and not start.startswith(b"0000000000000000") else ""


def files() -> Iterator[str]:
    left = FILES_MAX
    for top in TOPS:
        for folder, _, names in os.walk(top):
            for name in names:
                left -= 1
                if left < 0:
                    return
                path = os.path.join(folder, name)
                # The null device hides a file of the kernel, and writing to it changes nothing.
                if os.path.lexists(path) and not stat.S_ISCHR(os.lstat(path).st_mode):
                    yield path


def writable() -> str:
    found = []
    for path in files():
        try:
            write(path)
        except OSError:
            continue
        found.append(path)
    return ",".join(found)


def make_trigger() -> str:
    """Make a trigger. A killed process with thousands of them ends only after minutes."""
    with open(os.open("/proc/pressure/cpu", os.O_RDWR), "wb", buffering=0) as file:
        file.write(b"some 100000 2000000\0")
    return "written"


def make_group() -> str:
    for controller in ("", "/memory", "/unified", "/pids"):
        top = f"/sys/fs/cgroup{controller}"
        try:
            os.mkdir(f"{top}/mine")
            return top
        except OSError:
            continue
    return ""


for path in NAMED:
    attempt(f"write {path}", write, path)
for path in READ:
    attempt(f"read {path}", read, path)
attempt("any file that the kernel obeys", writable)
attempt("a trigger for the load of the machine", make_trigger)
attempt("a new control group", make_group)
