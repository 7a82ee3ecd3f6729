"""The system calls that a supervised process may not make, as a BPF filter.

Rejected calls fail with ENOSYS, as on a kernel that lacks them. libseccomp generates the filter,
because it knows the call numbers of every processor; without it there is no filter.
"""

from __future__ import annotations

import ctypes
import os
import struct

from fumehood.supervised.libseccomp import (
    ALLOW,
    MASKED_EQUAL,
    NOT_EQUAL,
    REJECT,
    Comparison,
    Rule,
    build_program,
)

_AF_UNIX = 1
_CLONE_THREAD = 0x10000
_PRIO_PROCESS, _IOPRIO_WHO_PROCESS = 0, 1
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2

REJECTED = """
    io_uring_setup io_uring_enter io_uring_register bpf userfaultfd perf_event_open vmsplice
    seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self

    ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_getfd
    pidfd_open pidfd_send_signal kcmp mbind set_mempolicy set_mempolicy_home_node migrate_pages
    move_pages memfd_secret

    add_key request_key keyctl

    clone3 unshare setns mount umount2 move_mount mount_setattr open_tree fsopen fsconfig fsmount
    fspick pivot_root chroot name_to_handle_at open_by_handle_at fanotify_init fanotify_mark
    quotactl quotactl_fd swapon swapoff sync syncfs lookup_dcookie acct

    shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open
    mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr

    init_module finit_module delete_module kexec_load kexec_file_load reboot syslog iopl ioperm
    modify_ldt vhangup sethostname setdomainname settimeofday clock_settime adjtimex clock_adjtime

    setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid capset
    personality inotify_init inotify_init1 mknod mknodat

    mincore cachestat fadvise64

    connect
""".split()  # noqa: SIM905
"""Grouped: kernel attack surface; other processes; keys; mounts and namespaces; shared memory; the
machine; the own identity and shared quotas; the page cache; sockets of other programs, which
Landlock does not protect."""

LATER_CALLS = range(457, 512)
"""Numbers of the calls that Linux added after version 6.7, such as ``listmount``, and of future
ones. Libraries do without them. They are equal on all processors; from 512, x86-64 has others.
Source: Linux, scripts/syscall.tbl."""

OWN_PROCESS_ONLY = {
    "prlimit64": 0,
    "sched_setaffinity": 0,
    "sched_setattr": 0,
    "sched_setparam": 0,
    "sched_setscheduler": 0,
    "setpriority": 1,
    "ioprio_set": 1,
}
"""Rejected for other processes, whose limits and priorities the same user could change. The number
is that of the argument with the process ID; 0 is the own process."""

SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
"""Calls that send a signal, rejected unless the process may start programs. The process must not
stop itself, or end as if an outsider had killed it. Before Linux 6.12, Landlock permits signals to
all processes of the user, such as those of other episodes. abort(3) works without a signal: it
executes an invalid instruction."""
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX = 8, 10, 15
_LOCKS_AND_WATCHES = (5, 6, 7, 36, 37, 38, 1024, 1026)
"""Commands of fcntl(2): record locks, locks of open files, F_SETLEASE and F_NOTIFY. All processes
share the files of Python. Locks on them could carry messages, and thousands of locks delay the
machine."""
_OWNERS_OF_SOCKETS = (0x8901, 0x8902)
"""FIOSETOWN and SIOCSPGRP, requests of ioctl(2) that do the same as F_SETOWN."""
_COMMAND = 0xFFFF_FFFF
"""Mask: the kernel reads only the lower 32 bits of the commands of fcntl and ioctl."""
_SOCKET_TYPE, _SENDING_TYPES = 0xF, (2, 3)
"""SOCK_DGRAM and SOCK_RAW, which send to any address. Source: unix(7)."""
_SHARED_ANONYMOUS = 0x21
"""MAP_SHARED | MAP_ANONYMOUS. Source: mmap(2)."""
_GROWS_DOWN = 0x100
"""MAP_GROWSDOWN: memory that RLIMIT_DATA does not count. Source: mmap(2)."""
FIXED_FILES = (
    *("link", "linkat", "symlink", "symlinkat", "rename", "renameat", "renameat2"),
    "timer_create",
)
"""Rejected unless the process may start programs. A link in the folder of an episode could make the
orchestrator mount another folder. A timer can send any signal, as ``F_SETSIG`` can; ``F_SETOWN``
chooses the process that gets it."""

OWN_SPEED = (
    *("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"),
    *("setpriority", "ioprio_set"),
)
"""Rejected unless the process may start programs. The process must not seem to wait for a
processor because it made itself slow."""

PROGRAMS = ("execve", "execveat", "fork", "vfork")
"""Rejected unless the process may start programs. ``clone`` then only makes threads."""


def build_filter(*, starts_programs: bool, shares_user: bool = False) -> bytes | None:
    """Return the filter as a BPF program, or None without libseccomp.

    Args:
        starts_programs: whether the process may start programs.
        shares_user: whether processes that it must not disturb have the same user; it then gets
            neither signals to send nor sockets.

    Raises:
        OSError: libseccomp rejects the list.
    """
    rules = [Rule(call) for call in (*REJECTED, *LATER_CALLS)]
    for call, argument in OWN_PROCESS_ONLY.items():
        rules.append(Rule(call, (Comparison(argument, NOT_EQUAL, 0, 0),)))
    for call, process in (("setpriority", _PRIO_PROCESS), ("ioprio_set", _IOPRIO_WHO_PROCESS)):
        rules.append(Rule(call, (Comparison(0, NOT_EQUAL, process, 0),)))
    rules.append(Rule("socket", (Comparison(0, NOT_EQUAL, _AF_UNIX, 0),)))
    rules += [
        Rule(call, (Comparison(1, MASKED_EQUAL, _SOCKET_TYPE, kind),))
        for call in ("socket", "socketpair")
        for kind in _SENDING_TYPES
    ]
    rules.append(Rule("mmap", (Comparison(3, MASKED_EQUAL, _GROWS_DOWN, _GROWS_DOWN),)))
    if not starts_programs:
        rules += [Rule(call) for call in (*PROGRAMS, *FIXED_FILES, *OWN_SPEED, *SIGNALS, "flock")]
        rules += [
            Rule(call, (Comparison(1, MASKED_EQUAL, _COMMAND, command),))
            for calls, commands in (
                (("fcntl", "fcntl64"), (_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, *_LOCKS_AND_WATCHES)),
                (("ioctl",), _OWNERS_OF_SOCKETS),
            )
            for call in calls
            for command in commands
        ]
        rules.append(Rule("clone", (Comparison(0, MASKED_EQUAL, _CLONE_THREAD, 0),)))
        # Memory that no limit of a process counts.
        shared = Comparison(3, MASKED_EQUAL, _SHARED_ANONYMOUS, _SHARED_ANONYMOUS)
        rules += [Rule("memfd_create"), Rule("mmap", (shared,))]
    if shares_user:
        rules += [Rule(call) for call in (*SIGNALS, "socket", "socketpair")]
    return build_program(ALLOW, REJECT, rules)


def install_filter(program: bytes) -> None:
    """Filter the calls of this thread and of all threads that it starts; needs ``no_new_privs``.

    Raises:
        OSError: the kernel rejects the filter.
    """
    instructions = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog
    described = struct.pack("HP", len(program) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, described, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"the filter of system calls: {os.strerror(code)}")
