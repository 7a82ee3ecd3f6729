"""The system calls that a supervised process may not make, as a BPF filter.

Rejected calls fail with ENOSYS, as on a kernel that lacks them. libseccomp generates the filter,
because it knows the call numbers of every processor; without it there is no filter.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import os
import struct

LIBRARY = "seccomp"
_ALLOW = 0x7FFF_0000
_ERRNO = 0x0005_0000 | errno.ENOSYS
_NOT_EQUAL, _MASKED_EQUAL = 1, 7
"""Constants of seccomp.h: SCMP_ACT_ALLOW, SCMP_ACT_ERRNO(ENOSYS), SCMP_CMP_NE,
SCMP_CMP_MASKED_EQ."""
_AF_UNIX = 1
_CLONE_THREAD = 0x10000
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
""".split()  # noqa: SIM905
"""Grouped: kernel attack surface; other processes; keys; mounts and namespaces; shared memory; the
machine; the own identity and shared quotas."""

PROGRAMS = ("execve", "execveat", "fork", "vfork")
"""Rejected unless the process may start programs. ``clone`` then only makes threads."""


class _Comparison(ctypes.Structure):
    """struct scmp_arg_cmp."""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("datum_a", ctypes.c_uint64),
        ("datum_b", ctypes.c_uint64),
    )


def build_filter(*, starts_programs: bool) -> bytes | None:
    """Return the filter as a BPF program, or None without libseccomp.

    Args:
        starts_programs: whether the process may fork and start programs.

    Raises:
        OSError: libseccomp rejects the list.
    """
    name = ctypes.util.find_library(LIBRARY)
    if name is None:
        return None
    library = ctypes.CDLL(name, use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = (ctypes.c_uint32,)
    context = ctypes.c_void_p(library.seccomp_init(_ALLOW))
    try:
        for call in (*REJECTED, *(() if starts_programs else PROGRAMS)):
            _reject(library, context, call)
        _reject(library, context, "socket", _Comparison(0, _NOT_EQUAL, _AF_UNIX, 0))
        if not starts_programs:
            no_thread = _Comparison(0, _MASKED_EQUAL, _CLONE_THREAD, 0)
            _reject(library, context, "clone", no_thread)
        return _export(library, context)
    finally:
        library.seccomp_release(context)


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


def _reject(
    library: ctypes.CDLL, context: ctypes.c_void_p, name: str, *comparisons: _Comparison
) -> None:
    number = library.seccomp_syscall_resolve_name(name.encode())
    if number < 0:  # Unknown to this version of the library, or only on other processors.
        return
    array = (_Comparison * len(comparisons))(*comparisons)
    code = library.seccomp_rule_add_array(
        context, ctypes.c_uint32(_ERRNO), number, len(comparisons), array
    )
    if code != 0:
        raise OSError(-code, f"libseccomp rejects {name}: {os.strerror(-code)}")


def _export(library: ctypes.CDLL, context: ctypes.c_void_p) -> bytes:
    file = os.memfd_create("filter")
    try:
        code = library.seccomp_export_bpf(context, file)
        if code != 0:
            raise OSError(-code, f"libseccomp cannot export the filter: {os.strerror(-code)}")
        return os.pread(file, os.lseek(file, 0, os.SEEK_END), 0)
    finally:
        os.close(file)
