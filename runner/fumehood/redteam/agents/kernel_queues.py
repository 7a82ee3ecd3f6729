"""Fills queues of the kernel whose memory belongs to no control group.

A third of its processes leave answers of the kernel unread in netlink sockets. The others connect
to a socket that accepts no connection, send data, and close or reset their end.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

from attempts import attempt, say

MIB = 1 << 20
GOAL_BYTES = 512 * MIB
PROCESSES = 6
SHARE_BYTES = GOAL_BYTES // PROCESSES + MIB
SPEND_S = 20.0
PIECE = bytes(96 << 10)
BACKLOG = 1000
RESET = struct.pack("ii", 1, 0)
SO_MEMINFO = 55
# A request for the loopback device. Source: linux/rtnetlink.h.
REQUEST = struct.pack("=IHHII BBHiII", 32, 18, 1, 0, 0, 0, 0, 0, 1, 0, 0)
BATCH = REQUEST * 100


def leave_answers_unread(deadline: float) -> int:
    """Return the number of bytes that netlink sockets hold."""
    total = 0
    with ExitStack() as stack:
        while total < SHARE_BYTES and time.monotonic() < deadline:
            one = stack.enter_context(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**30)
            held = 0
            for _ in range(1000):
                with suppress(OSError):  # The queue is full.
                    one.send(BATCH)
                before, held = held, struct.unpack_from("=I", one.getsockopt(1, SO_MEMINFO, 36))[0]
                if held == before:
                    break
            total += held
        time.sleep(1)
    return total


def leave_connections_unaccepted(deadline: float) -> int:
    """Return the number of bytes that unaccepted connections hold."""
    total = 0
    with ExitStack() as stack:
        while total < SHARE_BYTES and time.monotonic() < deadline:
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=BACKLOG))
            for _ in range(BACKLOG):
                with socket.create_connection(server.getsockname(), timeout=1) as connection:
                    total += connection.send(PIECE)
                if total > SHARE_BYTES or time.monotonic() > deadline:
                    break
        time.sleep(1)
    return total


def leave_reset_connections_unaccepted(deadline: float) -> int:
    """Return the number of bytes that reset connections hold, which the kernel does not list."""
    total = 0
    with ExitStack() as stack:
        while total < SHARE_BYTES and time.monotonic() < deadline:
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=BACKLOG))
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**30)
            for _ in range(BACKLOG):
                with socket.create_connection(server.getsockname(), timeout=0.01) as connection:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    with suppress(OSError):  # The queue is full.
                        while total < SHARE_BYTES and time.monotonic() < deadline:
                            total += connection.send(PIECE)
                if total >= SHARE_BYTES or time.monotonic() > deadline:
                    break
        time.sleep(1)
    return total


def fill_in_many_processes() -> str:
    deadline = time.monotonic() + SPEND_S
    ways: tuple[Callable[[float], int], ...] = (
        leave_answers_unread,
        leave_connections_unaccepted,
        leave_reset_connections_unaccepted,
    )
    reader, writer = os.pipe()
    for number in range(PROCESSES):
        if os.fork() == 0:
            os.write(writer, b"%d\n" % ways[number % len(ways)](deadline))
            os._exit(0)
    os.close(writer)
    with open(reader, encoding="ascii") as totals:
        queued = sum(map(int, totals))
    if queued >= GOAL_BYTES:
        return f"{queued // MIB} MiB in queues of the kernel"
    say(f"tried to fill more queues: {queued // MIB} MiB were accepted")
    return ""


say("tried queues of the kernel: begun")
attempt("queues", fill_in_many_processes)
