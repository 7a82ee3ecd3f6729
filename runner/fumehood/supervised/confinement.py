"""Separates a forked process from the host, before it runs any entry point."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path

from fumehood.supervised.landlock import restrict_files
from fumehood.supervised.limits import Access, Limits
from fumehood.supervised.system_calls import install_filter

_CLONE_NEWUSER, _CLONE_NEWNET = 0x1000_0000, 0x4000_0000
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_SYS_CAPSET_VERSION = 0x2008_0522
"""_LINUX_CAPABILITY_VERSION_3. Source: capset(2)."""
_ADDRESS_SPARE_BYTES = 256 << 30
"""Addresses beyond the limit of memory, such as mapped files of a snapshot. RLIMIT_DATA does not
count the page tables that the kernel allocates when a process reads memory that it never wrote.
They take 1/512 of the addresses, here 512 MiB."""
_FIRST_TO_GO = "500"
"""From -1000 to 1000. Source: proc(5), oom_score_adj."""
_ALSO_READABLE = (
    *("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime"),
    *("/dev/null", "/dev/random", "/dev/urandom"),
)
USER, NETWORK, FILES, SYSTEM_CALLS, NO_NEW_PRIVS = (
    "user",
    "network",
    "files",
    "system_calls",
    "no_new_privs",
)
"""Names of the parts of the confinement."""

_libc = ctypes.CDLL(None, use_errno=True)


def leave_network() -> bool:
    """Move this process into a network without devices, as an ordinary user.

    Must be called before other threads exist. The process keeps its user and has no capabilities
    afterwards. Returns False if the kernel does not permit it.
    """
    user, group = os.getuid(), os.getgid()
    if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return False
    process_folder = Path("/proc/self")
    with suppress(OSError):  # Without the files' names of its users it works too.
        (process_folder / "setgroups").write_text("deny", encoding="ascii")
        (process_folder / "uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        (process_folder / "gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    header = struct.pack("Ii", _SYS_CAPSET_VERSION, 0)
    _libc.capset(header, bytes(24))
    return True


def confine(
    limits: Limits,
    access: Access,
    *,
    uid: int | None,
    folder: str | None,
    server_pid: int,
    has_network: bool,
    program: bytes | None,
) -> list[str]:
    """Confine this process, which must have one thread; return the parts that hold.

    Args:
        limits: its limits.
        access: what it may reach.
        uid: its own user; None to keep the user, who is not root.
        folder: its own folder; None for none.
        server_pid: process ID of the fork server, with which it ends.
        has_network: whether it is still in the host's network.
        program: the filter of system calls; None for none.

    Raises:
        OSError: a part fails that this kernel supports.
    """
    holds = []
    with suppress(OSError):  # Not every kernel permits this.
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
    if uid is not None:
        if has_network:
            has_network = _libc.unshare(_CLONE_NEWNET) != 0
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        holds.append(USER)
    elif not has_network:
        # The list of sockets in a shared network namespace names those of other processes.
        leave_network()
    if not has_network:
        holds.append(NETWORK)
    # After the change of the user, which resets it.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != server_pid:
        os._exit(1)
    _limit(limits, own_user=uid is not None)
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
        holds.append(NO_NEW_PRIVS)
    writable_folders = (folder,) if folder else ()
    if restrict_files((*python_paths(), *access.readable), (*writable_folders, *access.writable)):
        holds.append(FILES)
    if program is not None:
        install_filter(program)
        holds.append(SYSTEM_CALLS)
    return holds


def python_paths() -> set[str]:
    """Return the files and folders that Python reads in any confined process."""
    paths = {path for path in sys.path if path and os.path.isabs(path)}
    return {*paths, sys.prefix, sys.base_prefix, "/proc/self", *_ALSO_READABLE}


def _limit(limits: Limits, *, own_user: bool) -> None:
    addresses = limits.memory_bytes + _ADDRESS_SPARE_BYTES
    # The signal SIGXCPU ends the process at the lower limit, unless something blocks it.
    for kind, lower, upper in (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_CPU, limits.cpu_s, limits.cpu_s + 1),
        (resource.RLIMIT_DATA, limits.memory_bytes, limits.memory_bytes),
        (resource.RLIMIT_AS, addresses, addresses),
        (resource.RLIMIT_NOFILE, limits.open_files, limits.open_files),
        (resource.RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes),
    ):
        _, hard_limit = resource.getrlimit(kind)
        if hard_limit == resource.RLIM_INFINITY:
            hard_limit = upper
        resource.setrlimit(kind, (min(lower, hard_limit), min(upper, hard_limit)))
    # The kernel counts the processes of a user, not the children of a process.
    if own_user or limits.processes == 0:
        resource.setrlimit(resource.RLIMIT_NPROC, (limits.processes, limits.processes))
