"""Attaches programs to sockets and to itself, and sends UDP broadcasts.

The whole machine shares the memory for such programs. The kernel delivers a broadcast to every
socket of a port before it does anything else on that processor.
"""

from __future__ import annotations

import ctypes
import socket
import struct

from attempts import attempt

ACCEPT_ALL = ctypes.create_string_buffer(struct.pack("=HBBI", 0x6, 0, 0, 0x7FFF_0000))
# Source: linux/filter.h, struct sock_fprog.
PROGRAM = struct.pack("@HP", 1, ctypes.addressof(ACCEPT_ALL))
SO_ATTACH_FILTER, SO_ATTACH_REUSEPORT_CBPF = 26, 51
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


attempt("a filter of a TCP socket", filter_socket, socket.AF_INET, SO_ATTACH_FILTER)
attempt("a filter of a local socket", filter_socket, socket.AF_UNIX, SO_ATTACH_FILTER)
attempt("a filter of a port", filter_socket, socket.AF_INET, SO_ATTACH_REUSEPORT_CBPF)
attempt("a broadcast", broadcast)
attempt("a filter of system calls", filter_calls)
