"""The system calls that an agent may make, as a Docker profile and as a BPF filter.

The list is the same for all engines whose boxes share the host's kernel. A rejected call fails with
ENOSYS, as on a kernel that lacks it, so libraries fall back on older calls. The list is Docker's
default profile without calls that an agent does not need: io_uring and BPF, tracing and reading
other processes, asking for the state of the page cache, keys, mounts and namespaces, System V
shared memory, UDP and rare network protocols, filters of sockets and of system calls, and all calls
that need a capability.

libseccomp generates the BPF filter, because it knows the call numbers of every processor. Without
that library there is no filter, and the engine reports it.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

from fumehood.core.errors import InfraError
from fumehood.supervised.libseccomp import (
    ALLOW,
    MASKED_EQUAL,
    REJECT,
    UNSUPPORTED,
    Comparison,
    Rule,
    build_program,
)


@cache
def docker_profile(*, of_root: bool = False) -> str:
    """Return the list as JSON for Docker's `--security-opt seccomp=…`.

    Args:
        of_root: for boxes whose programs are root for the host's kernel. The kernel counts
            inotify instances per user, so such a box gets none; otherwise it could take those of
            the host. Its programs cannot take the users that Fumehood gives to episodes and boxes,
            and they cannot reserve space on the disk without writing it.
    """
    refusal = {"action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS}
    otherwise = {"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": errno.ENOSYS}
    native = [{"architecture": f"SCMP_ARCH_{name}"} for name in ("X86_64", "AARCH64")]
    # Listed explicitly: older daemons ignore defaultErrnoRet and answer EPERM, on which libraries
    # do not fall back.
    withheld = _INOTIFY if of_root else ()
    refused = {"names": [*REFUSED, *withheld], **refusal}
    # Without fallocate, the C library writes the bytes itself.
    unsupported = {
        **refusal,
        "names": [*SETS_ATTRIBUTE, *(_RESERVES if of_root else ())],
        "errnoRet": errno.EOPNOTSUPP,
    }
    # Not refused explicitly: that would also refuse what the conditions allow.
    limited = _TAKES_USER if of_root else {}
    allowed = {
        "names": [
            name
            for name in ALLOWED
            if name not in {*withheld, *limited, *(_RESERVES if of_root else ())}
        ],
        "action": "SCMP_ACT_ALLOW",
    }
    conditional = [
        {
            "names": [condition.name],
            "action": "SCMP_ACT_ALLOW",
            "args": _docker_arguments(condition),
        }
        for condition in (*CONDITIONS, *(_USERS_BELOW_LIMIT if of_root else ()))
    ]
    no_audit = {
        "names": [NO_AUDIT.name],
        "action": "SCMP_ACT_ERRNO",
        "errnoRet": errno.EPROTONOSUPPORT,
        "args": _docker_arguments(NO_AUDIT),
    }
    return json.dumps(
        {
            **otherwise,
            "archMap": native,
            "syscalls": [allowed, refused, no_audit, unsupported, *conditional],
        }
    )


@cache
def filter_program() -> bytes | None:
    """Return the list as a BPF program, or None without libseccomp.

    Raises:
        InfraError: libseccomp rejects the list.
    """
    rules = [Rule(call) for call in ALLOWED]
    rules += [Rule(call, action=UNSUPPORTED) for call in SETS_ATTRIBUTE]
    rules += [Rule(condition.name, _comparisons(condition)) for condition in CONDITIONS]
    try:
        return build_program(REJECT, ALLOW, rules)
    except OSError as error:
        raise InfraError(str(error.strerror)) from None


def _comparisons(condition: Condition) -> tuple[Comparison, ...]:
    # The kernel reads only the lower half of the register, so the mask compares that half.
    first = Comparison(condition.argument, MASKED_EQUAL, condition.mask, condition.value)
    return (
        first,
        *(Comparison(at, MASKED_EQUAL, mask, value) for at, value, mask in condition.also),
    )


def _docker_arguments(condition: Condition) -> list[dict[str, object]]:
    return [
        {
            "index": comparison.arg,
            "op": "SCMP_CMP_MASKED_EQ",
            "value": comparison.datum_a,
            "valueTwo": comparison.datum_b,
        }
        for comparison in _comparisons(condition)
    ]


@dataclass(frozen=True, slots=True)
class Condition:
    """A call that is allowed if one argument, masked, has a certain value."""

    name: str
    argument: int
    """Position, from 0."""
    value: int
    mask: int = 0xFFFF_FFFF
    also: tuple[tuple[int, int, int], ...] = ()
    """Further required arguments: position, value, mask."""


def all_but(numbers: frozenset[int]) -> Iterator[tuple[int, int]]:
    """Yield values and masks that together match every number of 32 bits, except ``numbers``."""
    parts = [(0, 0, 32, numbers)]
    while parts:
        value, mask, below, excluded = parts.pop()
        if not excluded:
            yield value, mask
        elif below:
            bit = 1 << below - 1
            ones = frozenset(number for number in excluded if number & bit)
            parts.append((value | bit, mask | bit, below - 1, ones))
            parts.append((value, mask | bit, below - 1, excluded - ones))


ALLOWED = """
    access faccessat faccessat2 open openat openat2 creat close close_range read readv pread64
    preadv write writev pwrite64 pwritev lseek _llseek sendfile copy_file_range
    splice tee readahead fallocate truncate ftruncate fsync fdatasync sync_file_range
    flock fcntl dup dup2 dup3 pipe pipe2 stat fstat lstat newfstatat statx statfs fstatfs
    getdents getdents64 getcwd chdir fchdir mkdir mkdirat rmdir mknod mknodat link linkat symlink
    symlinkat readlink readlinkat unlink unlinkat rename renameat renameat2 chmod fchmod fchmodat
    fchmodat2 chown fchown fchownat lchown umask utime utimes utimensat futimesat getxattr
    lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr

    poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait
    epoll_pwait2 eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime
    inotify_init inotify_init1 inotify_add_watch inotify_rm_watch

    brk munmap mremap mprotect madvise msync mlock mlock2 munlock mlockall munlockall
    pkey_alloc pkey_free pkey_mprotect map_shadow_stack membarrier

    fork vfork execve execveat exit exit_group wait4 waitid kill tkill tgkill pidfd_open
    pidfd_send_signal rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn
    rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sigaltstack pause restart_syscall
    set_tid_address set_robust_list get_robust_list futex rseq arch_prctl
    set_thread_area get_thread_area getpid getppid gettid getpgid getpgrp getsid setpgid
    setsid

    getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid
    setresuid setresgid setgroups setfsuid setfsgid capget capset getrlimit setrlimit prlimit64
    getrusage getpriority setpriority sched_yield sched_getaffinity sched_setaffinity
    sched_getparam sched_setparam sched_getscheduler sched_setscheduler sched_get_priority_max
    sched_get_priority_min sched_rr_get_interval sched_getattr sched_setattr getcpu times

    time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep alarm getitimer
    setitimer timer_create timer_settime timer_gettime timer_getoverrun timer_delete uname sysinfo
    getrandom

    bind listen accept accept4 connect getsockname getpeername getsockopt
    recvfrom recvmsg recvmmsg sendto sendmsg sendmmsg shutdown
""".split()  # noqa: SIM905
"""Grouped: files; waiting; memory; processes; identity and limits; time; sockets."""

_ALL = 0xFFFF_FFFF

_TAKES_USER = {"setuid": 1, "setfsuid": 1, "setreuid": 2, "setresuid": 3}
"""Calls that change the user of a process → how many users they take."""
_USER_PARTS = ((0, 0xFFFF_0000), (_ALL, _ALL))
"""Value and mask of permitted users: a number below 65,536, or -1, which changes nothing."""
_RESERVES = ("fallocate",)
"""Reserves gigabytes on a disk in less time than passes between two measurements."""
_INOTIFY = ("inotify_init", "inotify_init1")
_NEW_NAMESPACES = 0x7E02_0000
"""Every flag of clone(2) that makes a namespace. Source: linux/sched.h."""
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_NETLINK_ROUTE, _NETLINK_AUDIT = 0, 9
_STREAM = 1
_TYPE_MASK = 0xF
"""The type of a socket, without its flags. Source: linux/net.h, SOCK_TYPE_MASK."""
_TCP = 6
_SOL_SOCKET = 1
_FILTER_OPTIONS = frozenset({26, 50, 51, 52})
"""SO_ATTACH_FILTER, SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_CBPF and SO_ATTACH_REUSEPORT_EBPF. Their
programs use memory of the kernel that the whole machine shares (``net.core.bpf_jit_limit``) and no
control group counts. Source: asm-generic/socket.h."""
_OPTIONS_OF_IP = (1, 2, 10, 11, 15, 24, 51)
"""IP_TOS, IP_TTL, IP_MTU_DISCOVER, IP_RECVERR, IP_FREEBIND, IP_BIND_ADDRESS_NO_PORT and
IP_LOCAL_PORT_RANGE. Source: linux/in.h."""
_OPTIONS_OF_TCP = (*range(1, 11), 12, 13, 16, 17, 18, 23, 24, 25, 30, 36)
"""TCP_NODELAY to TCP_WINDOW_CLAMP, TCP_QUICKACK, TCP_CONGESTION, TCP_THIN_LINEAR_TIMEOUTS,
TCP_THIN_DUPACK, TCP_USER_TIMEOUT, TCP_FASTOPEN, TCP_TIMESTAMP, TCP_NOTSENT_LOWAT,
TCP_FASTOPEN_CONNECT and TCP_INQ. Source: linux/tcp.h."""
_OPTIONS_OF_IPV6 = (16, 23, 25, 26, 67, 72)
"""IPV6_UNICAST_HOPS, IPV6_MTU_DISCOVER, IPV6_RECVERR, IPV6_V6ONLY, IPV6_TCLASS and
IPV6_ADDR_PREFERENCES. Source: linux/in6.h."""
_SOL_IP, _SOL_TCP, _SOL_IPV6, _SOL_NETLINK = 0, 6, 41, 270
_OPTIONS = {_SOL_IP: _OPTIONS_OF_IP, _SOL_TCP: _OPTIONS_OF_TCP, _SOL_IPV6: _OPTIONS_OF_IPV6}
"""Of each level, those that use no memory. Others keep up to 64 KiB of memory of the kernel for a
socket, which no control group counts, or share one number with all boxes."""
_HUGE_FILE, _HUGE_PAGES = 0x4, 0x4_0000
"""MFD_HUGETLB and MAP_HUGETLB. The machine has a fixed number of huge pages, and a limit of memory
does not include them. Source: linux/memfd.h, asm-generic/mman-common.h."""
_PRCTL_REFUSED = frozenset({22, 62})
"""PR_SET_SECCOMP installs a program of this kind, too. PR_SCHED_CORE keeps programs of other boxes
from the second thread of a processor core. Source: linux/prctl.h."""
_REQUESTS_REFUSED = frozenset(
    {
        # Chooses the line discipline of a terminal, and loads its module. Source: ioctl_tty(2).
        0x5423,
        # Reserve space for a file, like fallocate. Source: linux/falloc.h, FS_IOC_RESVSP to
        # FS_IOC_UNRESVSP64, and FS_IOC_ZERO_RANGE.
        *range(0x4030_5828, 0x4030_582C),
        0x4030_5839,
    }
)
_NO_FLAGS = 0
_AS_USUAL, _ASK = 0x0, 0xFFFF_FFFF

CONDITIONS = (
    Condition("clone", 0, 0, _NEW_NAMESPACES),
    Condition("personality", 0, _AS_USUAL),
    Condition("personality", 0, _ASK),
    # The flag RWF_NOWAIT tells whether a page of a file is in memory.
    Condition("preadv2", 5, _NO_FLAGS),
    Condition("pwritev2", 5, _NO_FLAGS),
    # Other families, types and protocols load rarely used modules of the kernel. The kernel copies
    # a UDP broadcast to each socket in one piece of work, which no limit of a box interrupts.
    Condition("socketpair", 0, _AF_UNIX),
    Condition("socket", 0, _AF_UNIX),
    *(
        Condition("socket", 0, family, also=((1, _STREAM, _TYPE_MASK), (2, protocol, _ALL)))
        for family in (_AF_INET, _AF_INET6)
        for protocol in (0, _TCP)
    ),
    # Libraries list network addresses with it.
    Condition("socket", 0, _AF_NETLINK, also=((2, _NETLINK_ROUTE, _ALL),)),
    *(Condition("ioctl", 1, value, mask) for value, mask in all_but(_REQUESTS_REFUSED)),
    *(Condition("prctl", 0, value, mask) for value, mask in all_but(_PRCTL_REFUSED)),
    Condition("mmap", 3, 0, _HUGE_PAGES),
    Condition("memfd_create", 1, 0, _HUGE_FILE),
    *(
        Condition("setsockopt", 1, level, also=((2, option, _ALL),))
        for level, options in _OPTIONS.items()
        for option in options
    ),
    Condition("setsockopt", 1, _SOL_NETLINK),
    *(
        Condition("setsockopt", 1, _SOL_SOCKET, also=((2, *option),))
        for option in all_but(_FILTER_OPTIONS)
    ),
)
"""Calls that are allowed with certain arguments. clone3 is not allowed: a filter cannot read its
arguments, which are in memory."""

_USERS_BELOW_LIMIT = tuple(
    Condition(call, 0, *first, also=tuple((at, *part) for at, part in enumerate(others, start=1)))
    for call, users in _TAKES_USER.items()
    for first, *others in product(_USER_PARTS, repeat=users)
)
"""The users of ``core.user_ids`` have larger numbers. A program with the user of another episode
could use up the processes and descriptors that the kernel grants to this user."""

SETS_ATTRIBUTE = ("setxattr", "lsetxattr", "fsetxattr")
"""Fail as on a file system without extended attributes, because a filter cannot read their names. A
file can have an access list of 64 KiB (system.posix_acl_access), and a folder a second one
(_default). Those of files in memory are memory of the kernel that no control group counts."""

NO_AUDIT = Condition("socket", 0, _AF_NETLINK, also=((2, _NETLINK_AUDIT, _ALL),))
"""Fails as on a kernel without audit. After another error, useradd, groupadd and su end. Source:
shadow 4.13, ``lib/audit_help.c``."""

REFUSED = """
    io_uring_setup io_uring_enter io_uring_register bpf userfaultfd perf_event_open vmsplice
    futex_waitv futex_wake futex_wait futex_requeue seccomp
    landlock_create_ruleset landlock_add_rule landlock_restrict_self

    ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_getfd kcmp
    mbind get_mempolicy set_mempolicy set_mempolicy_home_node migrate_pages move_pages memfd_secret

    mincore cachestat fadvise64 io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents

    add_key request_key keyctl

    clone3 unshare setns mount umount2 move_mount mount_setattr open_tree fsopen fsconfig fsmount
    fspick pivot_root chroot name_to_handle_at open_by_handle_at fanotify_init fanotify_mark
    quotactl quotactl_fd swapon swapoff sync syncfs lookup_dcookie acct

    shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open
    mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr

    init_module finit_module delete_module create_module query_module get_kernel_syms kexec_load
    kexec_file_load reboot syslog iopl ioperm modify_ldt vhangup sethostname setdomainname
    settimeofday clock_settime adjtimex clock_adjtime ioprio_get ioprio_set

    _sysctl afs_syscall epoll_ctl_old epoll_wait_old getpmsg putpmsg nfsservctl remap_file_pages
    security sysfs tuxcall uselib ustat vserver
""".split()  # noqa: SIM905
"""Rejected calls, grouped: kernel attack surface; other processes; the page cache, and asynchronous
reads, which tell what is in it; keys; mounts and namespaces; shared memory; the machine; obsolete
calls. Calls in no list are rejected too."""
