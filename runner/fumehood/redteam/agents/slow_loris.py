"""Starts prefaces, headers and messages without finishing them, and does not read answers."""

from __future__ import annotations

import time

from attempts import attempt
from calls import say_whether_served
from frames import DATA, END_HEADERS, PREFACE, SETTINGS, Connection, frame, message, open_stream

HOLD_S = 1
EACH = 30


def connections(octets: bytes, *, polite: bool = True) -> list[Connection]:
    """Open connections and send the same on each."""
    held = []
    for _ in range(EACH):
        held.append(Connection(polite=polite))
        held[-1].send(octets)
    return held


def half_prefaces() -> list[Connection]:
    return connections(PREFACE[:7], polite=False)


def half_headers() -> list[Connection]:
    return connections(open_stream(1, flags=0))


def half_messages() -> list[Connection]:
    streams = b"".join(open_stream(stream) for stream in range(1, 40, 2))
    return connections(streams + frame(DATA, 0, 1, message(b"\x0a", length=4_000_000)))


def unread_answers() -> list[Connection]:
    connection = Connection(polite=False)
    # An empty window: the server must keep its answers.
    connection.send(PREFACE + frame(SETTINGS, 0, 0, b"\0\4\0\0\0\0"))
    for stream in range(1, 2000, 2):
        connection.send(
            open_stream(stream, flags=END_HEADERS)
            + frame(DATA, 1, stream, message(b"\x0a\x08list_dir"))
        )
    return [connection]


def hold(kind: object) -> str:
    held = kind()  # type: ignore[operator]
    end = time.monotonic() + HOLD_S
    while time.monotonic() < end:
        time.sleep(0.25)
        for connection in held:
            try:
                connection.send(frame(DATA, 0, 1, b"\0") if kind is half_messages else b"")
            except OSError:
                continue
    for connection in held:
        connection.close()
    return ""


for kind in (half_prefaces, half_headers, half_messages, unread_answers):
    attempt(f"{kind.__name__.replace('_', ' ')}, held", hold, kind)
say_whether_served()
