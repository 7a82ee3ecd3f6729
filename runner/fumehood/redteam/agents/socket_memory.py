"""Queues data in connections to itself until it holds more memory than its box may have.

Where control groups have version 1, the memory of sockets has a separate limit, which is off by
default, and all network namespaces of a machine share the bound of the kernel.
"""

from __future__ import annotations

import os
import socket
import time

from attempts import GIVEN, attempt, say

MIB = 1 << 20
PROCESSES = 4
CONNECTIONS = 120
SPEND_S = 6.0
PIECE = bytes(1 << 18)


def queue(bytes_max: int) -> int:
    """Fill connections without a reader, and return the number of bytes."""
    queued = 0
    kept = []
    deadline = time.monotonic() + SPEND_S
    with socket.create_server(("127.0.0.1", 0), backlog=CONNECTIONS) as server:
        for _ in range(CONNECTIONS):
            kept.append(socket.create_connection(server.getsockname()))
            kept.append(server.accept()[0])
            kept[-2].setblocking(False)
            try:
                while queued < bytes_max and time.monotonic() < deadline:
                    queued += kept[-2].send(PIECE)
            except BlockingIOError:
                continue
            break
    time.sleep(max(0.0, deadline - time.monotonic()))
    return queued


def queue_in_many_processes() -> str:
    bytes_max = int(GIVEN["memory"])
    reader, writer = os.pipe()
    for _ in range(PROCESSES):
        if os.fork() == 0:
            os.write(writer, b"%d\n" % queue(bytes_max * 5 // 4 // PROCESSES))
            os._exit(0)
    os.close(writer)
    with open(reader, encoding="ascii") as totals:
        queued = sum(map(int, totals))
    if queued > bytes_max:
        return f"{queued // MIB} MiB in sockets, of {bytes_max // MIB}"
    say(f"tried to queue more: {queued // MIB} MiB were accepted")
    return ""


say("tried memory of sockets: begun")
attempt("memory of sockets", queue_in_many_processes)
