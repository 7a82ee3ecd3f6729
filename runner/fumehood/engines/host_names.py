"""Files of /proc that name the host or count what other boxes do, which no box can read.

Every engine that shares the host's kernel shows them empty. What the kernel answers in other ways,
such as the load of the machine, remains; the threat model lists it.
"""

from __future__ import annotations

_NAMES = ("/proc/cmdline", "/proc/sys/kernel/random/boot_id", "/proc/version_signature")
"""The kernel's command line, which holds disk names, and the number of this boot."""
_LOCKS = ("/proc/locks",)
"""Locks of open files are listed in every process namespace, with the ranges that they cover."""
_COUNTERS = (
    *("/proc/buddyinfo", "/proc/diskstats", "/proc/interrupts", "/proc/key-users"),
    *("/proc/pressure", "/proc/schedstat", "/proc/softirqs", "/proc/vmstat", "/proc/zoneinfo"),
    *(f"/proc/sys/fs/{name}" for name in ("aio-nr", "dentry-state", "file-nr")),
    *(f"/proc/sys/fs/{name}" for name in ("inode-nr", "inode-state")),
    "/proc/sys/kernel/pty/nr",
)
"""Counters of the whole machine that a box can raise and another one can read exactly."""

MASKED = (*_NAMES, *_LOCKS, *_COUNTERS)
