"""Builds filters of system calls with libseccomp, which knows the call numbers of processors."""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import os
from collections.abc import Iterable
from typing import NamedTuple

LIBRARY = "seccomp"
ALLOW = 0x7FFF_0000
"""SCMP_ACT_ALLOW. Source: seccomp.h, like the other constants."""
REJECT = 0x0005_0000 | errno.ENOSYS
"""SCMP_ACT_ERRNO(ENOSYS): the call fails as on a kernel that lacks it."""
UNSUPPORTED = 0x0005_0000 | errno.EOPNOTSUPP
"""SCMP_ACT_ERRNO(EOPNOTSUPP): the call fails as on a file system that lacks it."""
NOT_EQUAL, EQUAL, MASKED_EQUAL = 1, 4, 7
"""SCMP_CMP_NE, SCMP_CMP_EQ and SCMP_CMP_MASKED_EQ."""
_NO_SUCH_CALL = -1
"""__NR_SCMP_ERROR; pseudo numbers of calls that only other processors have are lower."""


class Comparison(ctypes.Structure):
    """struct scmp_arg_cmp."""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("datum_a", ctypes.c_uint64),
        ("datum_b", ctypes.c_uint64),
    )


class Rule(NamedTuple):
    """A call with the arguments for which the rule holds; no comparisons for all arguments."""

    call: str | int
    """Name, or the number on the processor of this machine."""
    comparisons: tuple[Comparison, ...] = ()
    action: int | None = None
    """None for the action of the other rules."""


def build_program(default: int, action: int, rules: Iterable[Rule]) -> bytes | None:
    """Return a filter as a BPF program, or None if libseccomp is not installed.

    Args:
        default: action for calls without a rule.
        action: action for calls with a rule that names no other one.
        rules: calls that this processor lacks are skipped.

    Raises:
        OSError: libseccomp rejects a rule.
    """
    name = ctypes.util.find_library(LIBRARY)
    if name is None:
        return None
    library = ctypes.CDLL(name, use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = (ctypes.c_uint32,)
    context = ctypes.c_void_p(library.seccomp_init(default))
    try:
        for rule in rules:
            _add(library, context, action if rule.action is None else rule.action, rule)
        return _export(library, context)
    finally:
        library.seccomp_release(context)


def _add(library: ctypes.CDLL, context: ctypes.c_void_p, action: int, rule: Rule) -> None:
    number = rule.call
    if isinstance(number, str):
        number = library.seccomp_syscall_resolve_name(number.encode())
    if number == _NO_SUCH_CALL:  # Unknown to this version of the library.
        return
    array = (Comparison * len(rule.comparisons))(*rule.comparisons)
    code = library.seccomp_rule_add_array(
        context, ctypes.c_uint32(action), number, len(rule.comparisons), array
    )
    # EDOM: this processor lacks the call.
    if code not in (0, -errno.EDOM):
        raise OSError(-code, f"libseccomp rejects {rule.call}: {os.strerror(-code)}")


def _export(library: ctypes.CDLL, context: ctypes.c_void_p) -> bytes:
    file = os.memfd_create("filter")
    try:
        code = library.seccomp_export_bpf(context, file)
        if code != 0:
            raise OSError(-code, f"libseccomp cannot export the filter: {os.strerror(-code)}")
        return os.pread(file, os.lseek(file, 0, os.SEEK_END), 0)
    finally:
        os.close(file)
