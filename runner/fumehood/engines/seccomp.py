"""Filters of system calls, made of the list: as JSON for Docker, as a program for the kernel.

The program is made by libseccomp, which knows the numbers of calls on every processor. Where that library is
missing there is no program, and whoever wanted one has to say so.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import json
import os
from functools import cache

from fumehood.core.errors import InfraError
from fumehood.engines.system_calls import ALLOWED, CONDITIONS, REFUSED, Condition

LIBRARY = "seccomp"
_ALLOW = 0x7FFF_0000
_ERRNO = 0x0005_0000 | errno.ENOSYS
_MASKED_EQUAL = 7
"""Of seccomp.h: SCMP_ACT_ALLOW, SCMP_ACT_ERRNO(ENOSYS), SCMP_CMP_MASKED_EQ."""
_NO_SUCH_CALL = -1
"""__NR_SCMP_ERROR; pseudo numbers of calls that only other processors have are lower."""


class _Comparison(ctypes.Structure):
    """struct scmp_arg_cmp."""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("datum_a", ctypes.c_uint64),
        ("datum_b", ctypes.c_uint64),
    )


@cache
def docker_profile() -> str:
    """Return the list as Docker reads it: `--security-opt seccomp=…`."""
    refusal = {"action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS}
    otherwise = {"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": errno.ENOSYS}
    native = [{"architecture": f"SCMP_ARCH_{name}"} for name in ("X86_64", "AARCH64")]
    # Named, because older daemons know no error but "not permitted" for what is in no list, and
    # libraries take only "no such call" as a reason to fall back.
    refused = {"names": REFUSED, **refusal}
    allowed = {"names": ALLOWED, "action": "SCMP_ACT_ALLOW"}
    conditional = [
        {"names": [one.name], "action": "SCMP_ACT_ALLOW", "args": _docker_arguments(one)}
        for one in CONDITIONS
    ]
    return json.dumps(
        {**otherwise, "archMap": native, "syscalls": [allowed, refused, *conditional]}
    )


@cache
def filter_program() -> bytes | None:
    """Return the list as the kernel reads it, or None where libseccomp is missing.

    Raises:
        InfraError: libseccomp refuses the list.
    """
    name = ctypes.util.find_library(LIBRARY)
    if name is None:
        return None
    library = ctypes.CDLL(name, use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = (ctypes.c_uint32,)
    filling = ctypes.c_void_p(library.seccomp_init(_ERRNO))
    try:
        for call in ALLOWED:
            _allow(library, filling, call, ())
        for condition in CONDITIONS:
            _allow(library, filling, condition.name, _comparisons(condition))
        return _export(library, filling)
    finally:
        library.seccomp_release(filling)


def _allow(
    library: ctypes.CDLL, filling: ctypes.c_void_p, name: str, comparisons: tuple[_Comparison, ...]
) -> None:
    number = library.seccomp_syscall_resolve_name(name.encode())
    if number == _NO_SUCH_CALL:  # Newer than the library: refused as unknown.
        return
    array = (_Comparison * len(comparisons))(*comparisons)
    code = library.seccomp_rule_add_array(
        filling, ctypes.c_uint32(_ALLOW), number, len(comparisons), array
    )
    # A call that this processor never had needs no rule.
    if code not in (0, -errno.EDOM):
        raise InfraError(f"libseccomp refuses {name}: {os.strerror(-code)}")


def _export(library: ctypes.CDLL, filling: ctypes.c_void_p) -> bytes:
    file = os.memfd_create("filter")
    try:
        code = library.seccomp_export_bpf(filling, file)
        if code != 0:
            raise InfraError(f"libseccomp makes no program: {os.strerror(-code)}")
        size = os.lseek(file, 0, os.SEEK_END)
        return os.pread(file, size, 0)
    finally:
        os.close(file)


def _comparisons(condition: Condition) -> tuple[_Comparison, ...]:
    # A register may hold more than the kernel looks at, so comparisons are of the half that it does.
    first = _Comparison(condition.argument, _MASKED_EQUAL, condition.mask, condition.value)
    return (
        first,
        *(_Comparison(at, _MASKED_EQUAL, 0xFFFF_FFFF, value) for at, value in condition.also),
    )


def _docker_arguments(condition: Condition) -> list[dict[str, object]]:
    return [
        {
            "index": one.arg,
            "op": "SCMP_CMP_MASKED_EQ",
            "value": one.datum_a,
            "valueTwo": one.datum_b,
        }
        for one in _comparisons(condition)
    ]
