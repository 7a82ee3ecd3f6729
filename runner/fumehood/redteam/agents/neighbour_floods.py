"""Floods its own sockets with messages that cost nothing, so that a neighbour's calls become slow.

The argument ``variant`` chooses one flood, so that each has its own numbers.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from itertools import cycle, islice
from threading import Thread

from attempts import GIVEN, SOCKET, attempt, say
from calls import call, open_channel
from frames import PREFACE, Connection, endless_headers, pings, rapid_resets, settings
from speak_http import connect, greeting, request

SPEND_S = 6.0
CLIENTS = 16
MALFORMED = b'{"path":"' + b"x" * 1_000_000 + b'"'
"""A megabyte of JSON without its last bracket: it is read to its end, and charged to no budget."""
MODEL_BODY_BYTES = 31 << 20


def send(octets: bytes, times: int, deadline: float) -> None:
    """Send a request so many times on each connection."""
    while time.monotonic() < deadline:
        with connect() as one:
            one.settimeout(SPEND_S)
            for _ in range(times):
                one.sendall(octets)
                one.recv(65536)


def http_json(deadline: float) -> None:
    send(request("POST", "/call/list_dir", MALFORMED), 1, deadline)


def grpc_json(deadline: float) -> None:
    with open_channel() as channel:
        while time.monotonic() < deadline:
            call(channel, "list_dir", MALFORMED.decode())


def model_bodies(deadline: float) -> None:
    text = b'{"model":"unknown-model","messages":[{"role":"user","content":['
    body = text + b'"' + b'a","' * (MODEL_BODY_BYTES // 4) + b'"]}]}'
    send(request("POST", "/v1/chat/completions", body), 1, deadline)


def many_numbers(deadline: float) -> None:
    body = b'{"path":[' + b"1," * 400_000 + b"1]}"
    send(request("POST", "/call/list_dir", body), 1, deadline)


def tool_lists(deadline: float) -> None:
    send(request("GET", "/tools"), 100, deadline)


def mcp_sessions(deadline: float) -> None:
    send(greeting("x" * 1000), 20, deadline)


def connections(deadline: float) -> None:
    for path in cycle((SOCKET, SOCKET.replace("grpc.sock", "http.sock"))):
        if time.monotonic() > deadline:
            return
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(1)
            one.connect(path)
            one.sendall(PREFACE)


def send_frames(pieces: list[bytes], deadline: float) -> None:
    """Send the same frames on one connection after the other."""
    while time.monotonic() < deadline:
        connection = Connection()
        for piece in pieces:
            connection.send(piece)
        connection.close()


def many_pings(deadline: float) -> None:
    # Many in one piece, so that sending costs less than answering.
    both = zip(pings(), settings(), strict=True)
    send_frames([b"".join(ping + setting for ping, setting in islice(both, 1000))] * 100, deadline)


def many_resets(deadline: float) -> None:
    send_frames(list(islice(rapid_resets(), 2000)), deadline)


def many_headers(deadline: float) -> None:
    # In one piece, so that sending costs less than answering.
    send_frames([b"".join(islice(endless_headers(), 2001))], deadline)


FLOODS: dict[str, tuple[Callable[[float], None], int]] = {
    "http-json": (http_json, CLIENTS),
    "grpc-json": (grpc_json, CLIENTS),
    "numbers": (many_numbers, CLIENTS),
    "model-bodies": (model_bodies, 2),
    "tool-lists": (tool_lists, CLIENTS),
    "mcp-sessions": (mcp_sessions, CLIENTS),
    "connections": (connections, 8),
    "pings": (many_pings, 8),
    "rapid-resets": (many_resets, 8),
    "endless-headers": (many_headers, 8),
}


def repeat(flood: Callable[[float], None], deadline: float) -> None:
    """Go on after a server that hung up."""
    while time.monotonic() < deadline:
        try:
            flood(deadline)
        except OSError:
            time.sleep(0.01)


def run(name: str) -> str:
    flood, clients = FLOODS[name]
    deadline = time.monotonic() + SPEND_S
    threads = [Thread(target=repeat, args=(flood, deadline), daemon=True) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SPEND_S + 2)
    return ""


chosen = GIVEN.get("variant", "connections")
say(f"tried a flood of {chosen}: begun")
attempt(f"a flood of {chosen}", run, chosen)
