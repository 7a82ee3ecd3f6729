"""Fills memory of the kernel with filters, socket options and access lists; sends broadcasts.

The whole machine shares the memory for such programs, and no limit counts that of options of
sockets and of access lists of files. The kernel delivers a broadcast to every socket of a port
before it does anything else on that processor.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import tempfile

from attempts import attempt

ACCEPT_ALL = ctypes.create_string_buffer(struct.pack("=HBBI", 0x6, 0, 0, 0x7FFF_0000))
# Source: linux/filter.h, struct sock_fprog.
PROGRAM = struct.pack("@HP", 1, ctypes.addressof(ACCEPT_ALL))
SO_ATTACH_FILTER, SO_ATTACH_REUSEPORT_CBPF = 26, 51
IPPROTO_IPV6, IPV6_2292PKTOPTIONS, IPV6_HOPLIMIT = 41, 6, 52
# Source: linux/posix_acl_xattr.h.
OWNER, USER, GROUP, MASK, OTHERS, ANYONE = 1, 2, 4, 16, 32, 0xFFFF_FFFF
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


def filter_socket(family: int, option: int) -> str:
    with socket.socket(family, socket.SOCK_STREAM) as one:
        if option == SO_ATTACH_REUSEPORT_CBPF:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        one.setsockopt(socket.SOL_SOCKET, option, PROGRAM)
    return "attached"


def filter_calls() -> str:
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    program = ctypes.create_string_buffer(PROGRAM)
    if library.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_SECCOMP)")
    return "installed"


def broadcast() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        one.sendto(b"x", ("127.255.255.255", 9))
    return "sent"


def keep_option() -> str:
    hops = struct.pack("@Niii4x", 20, IPPROTO_IPV6, IPV6_HOPLIMIT, 64)
    with socket.socket(socket.AF_INET6) as one:
        one.setsockopt(IPPROTO_IPV6, IPV6_2292PKTOPTIONS, 2000 * hops)
    return "48,000 bytes kept"


def keep_access_list() -> str:
    users = 8000 * [(USER, os.getuid())]
    entries = [(OWNER, ANYONE), *users, (GROUP, ANYONE), (MASK, ANYONE), (OTHERS, ANYONE)]
    content = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", k, 7, who) for k, who in entries)
    with tempfile.NamedTemporaryFile() as file:
        os.setxattr(file.name, "system.posix_acl_access", content)
    return "64,000 bytes kept"


attempt("a filter of a TCP socket", filter_socket, socket.AF_INET, SO_ATTACH_FILTER)
attempt("a filter of a local socket", filter_socket, socket.AF_UNIX, SO_ATTACH_FILTER)
attempt("a filter of a port", filter_socket, socket.AF_INET, SO_ATTACH_REUSEPORT_CBPF)
attempt("a broadcast", broadcast)
attempt("a filter of system calls", filter_calls)
attempt("an option of a socket", keep_option)
attempt("an access list of a file", keep_access_list)
