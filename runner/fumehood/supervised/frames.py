"""Messages on a stream socket: their length in four bytes, big-endian, then the bytes."""

from __future__ import annotations

import socket
import struct

_LENGTH = struct.Struct(">I")
FRAME_BYTES_MAX = 256 << 20
"""Default limit of one message."""


def send_frame(channel: socket.socket, message: bytes) -> None:
    """Send one message.

    Raises:
        OSError: the other end is closed.
    """
    channel.sendall(_LENGTH.pack(len(message)) + message)


def receive_frame(channel: socket.socket, bytes_max: int = FRAME_BYTES_MAX) -> bytes | None:
    """Return the next message; None if the other end is closed, or for more than ``bytes_max``.

    Raises:
        OSError: reading failed, or the socket's timeout has passed.
    """
    head = _receive(channel, _LENGTH.size)
    if head is None:
        return None
    (size,) = _LENGTH.unpack(head)
    return _receive(channel, size) if size <= bytes_max else None


def _receive(channel: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = channel.recv(min(size - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)
