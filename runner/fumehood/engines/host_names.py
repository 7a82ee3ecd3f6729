"""Files of /proc that name the host, carry exact messages between boxes, or slow the kernel
down. No box can read or write them.

Every engine that shares the host's kernel shows them empty. Files that programs need, such as
/proc/stat and /proc/meminfo, describe the whole machine and remain; the threat model lists them.
"""

from __future__ import annotations

_NAMES = ("/proc/cmdline", "/proc/fs", "/proc/sys/kernel/random/boot_id")
"""The kernel's command line, which holds disk names, the disks of the host with their free blocks,
and the number of this boot."""
_LOCKS = ("/proc/locks",)
"""Locks of open files are listed in every process namespace, with the ranges that they cover."""
_COUNTERS = ("/proc/key-users", "/proc/sys/fs", "/proc/sys/kernel/pty/nr")
"""Numbers of open files, keys and terminals of the whole machine. A box can raise each one by one,
and another box can read it exactly."""
_TRIGGERS = ("/proc/pressure",)
"""Every program may write triggers there. The kernel needs minutes to remove thousands of triggers
of a killed process, so its box would not end. Source: Linux, accounting/psi.rst."""

MASKED = (*_NAMES, *_LOCKS, *_COUNTERS, *_TRIGGERS)

MASKED_FROM_ROOT = (
    *("/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/pagetypeinfo"),
    *("/proc/slabinfo", "/proc/vmallocinfo", "/sys/kernel/mm/damon", "/sys/kernel/slab"),
)
"""Memory of the kernel and of all its pages, which only root reads, also root of a workspace."""
READ_ONLY_TO_ROOT = ("/sys/fs/cgroup",)
"""The folder of control groups. With version 1 it is in memory, and root could write to it."""
