"""Messages that break protobuf parsers: nesting, groups, wrong lengths, invalid text."""

from __future__ import annotations

import grpc
from attempts import attempt, say
from calls import TOOLS, call, open_channel, send_raw, varint

TOOL, SUBMIT = f"{TOOLS}CallTool", f"{TOOLS}Submit"


def nested(levels: int) -> bytes:
    octets = b""
    for _ in range(levels):
        octets = b"\x0a" + varint(len(octets)) + octets
    return octets


BOMBS = {
    "groups within groups": b"\xa3\x06" * 500_000,
    "groups that end before they begin": b"\xa4\x06" * 1000,
    "messages within messages": nested(3000),
    "a length that lies": b"\x0a" + varint(1 << 40) + b"x",
    "a length beyond numbers": b"\x0a" + b"\xff" * 10,
    "text that is none": b"\x0a\x04\xff\xfe\xed\xa0" + b"\x12\x02{}",
    "half a surrogate": b"\x0a\x03\xed\xa0\x80",
    "a million unknown fields": b"\xf8\x3f\x01" * 1_000_000,
    "the same field a million times": b"\x0a\x01x" * 1_000_000,
    "field number zero": b"\x02\x01x",
    "kinds that do not exist": b"\x0f\x0e\x07\x06",
    "a number of too many bytes": b"\x08" + b"\x80" * 100,
}


def silence(channel: grpc.Channel) -> str:
    """Return the status of a call if the service did not answer it."""
    status = call(channel, "list_dir", "{}")
    return status if status == "UNAVAILABLE" else ""


MALFORMED = {
    "groups within groups",
    "groups that end before they begin",
    "a length that lies",
    "a length beyond numbers",
    "text that is none",
    "half a surrogate",
    "field number zero",
    "a number of too many bytes",
}
"""Messages that every parser must refuse; the others are only large."""

with open_channel() as channel:
    for what, octets in BOMBS.items():
        for method in (TOOL, SUBMIT if "text" in what else TOOL):
            status = send_raw(channel, method, octets)
            won = status == "OK" and what in MALFORMED
            say(f"{'got' if won else 'tried'} {what}: {status}")
    attempt("a silent service", silence, channel)
