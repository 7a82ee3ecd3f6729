"""One box leaves a message in the page cache of files that a later box can read.

It evicts pages and reads those that say 1; the other asks which pages are in memory, without
reading them: mincore(2), cachestat(2), preadv2(2) with RWF_NOWAIT.
"""

from __future__ import annotations

import ctypes
import glob
import mmap
import os
import struct
from collections.abc import Callable

from attempts import GIVEN, attempt, say

PAGE = mmap.PAGESIZE
STRIDE = 64 * PAGE
"""Far apart, because reading one page may load the pages beside it."""
BITS = 32
FILES_MAX = 12
CACHESTAT = 451
"""Source: asm-generic/unistd.h."""
libc = ctypes.CDLL(None, use_errno=True)


def files() -> list[str]:
    """Return large files that both boxes have and that programs rarely map."""
    patterns = ("/usr/lib/*/lib*.so*", "/usr/lib/*/lib*.a", "/usr/lib/locale/*", "/usr/bin/*")
    found = {os.path.realpath(path) for pattern in patterns for path in glob.glob(pattern)}
    large = [
        path for path in found if os.path.isfile(path) and os.path.getsize(path) > BITS * STRIDE
    ]
    return sorted(large, key=lambda path: (-os.path.getsize(path), path))[:FILES_MAX]


def write(path: str) -> str:
    bits = int.from_bytes(GIVEN["message"].encode()[:4], "big")
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    for bit in range(BITS):
        if bits >> bit & 1:
            os.pread(descriptor, 1, bit * STRIDE)
    return ""


def by_preadv(descriptor: int, offset: int) -> bool:
    try:
        os.preadv(descriptor, [bytearray(1)], offset, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    return True


def by_cachestat(descriptor: int, offset: int) -> bool:
    span = struct.pack("QQ", offset, PAGE)
    answer = ctypes.create_string_buffer(40)
    if libc.syscall(CACHESTAT, descriptor, span, answer, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return bool(struct.unpack_from("Q", answer)[0])


def by_mincore(descriptor: int, offset: int) -> bool:
    view = mmap.mmap(descriptor, PAGE, mmap.MAP_PRIVATE, offset=offset)
    answer = ctypes.create_string_buffer(1)
    start = ctypes.addressof(ctypes.c_char.from_buffer(view))
    if libc.mincore(ctypes.c_void_p(start), ctypes.c_size_t(PAGE), answer) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return bool(answer.raw[0] & 1)


WAYS: dict[str, Callable[[int, int], bool]] = {
    "preadv2": by_preadv,
    "cachestat": by_cachestat,
    "mincore": by_mincore,
}


def read(path: str, is_cached: Callable[[int, int], bool]) -> str:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        bits = sum(is_cached(descriptor, bit * STRIDE) << bit for bit in range(BITS))
    finally:
        os.close(descriptor)
    say(f"tried to read {path}: {bits.to_bytes(4, 'big').decode('ascii', 'replace')}")
    return ""


if GIVEN.get("role") == "write":
    for path in files():
        attempt(f"pages of {path}", write, path)
else:
    for name, way in WAYS.items():
        for path in files():
            attempt(f"{name} on {path}", read, path, way)
say(f"tried {len(files())} files, of which one must be larger than {BITS * STRIDE} bytes")
