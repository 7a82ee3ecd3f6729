"""Messages on a stream socket: their length in four bytes, big-endian, then the bytes."""

from __future__ import annotations

import socket
import struct
import time

_LENGTH = struct.Struct(">I")
FRAME_BYTES_MAX = 256 << 20
"""Default limit of one message."""


class LargeFrame(ValueError):
    """A message exceeds its limit."""


def send_frame(channel: socket.socket, message: bytes) -> None:
    """Send one message.

    Raises:
        OSError: the other end is closed.
    """
    channel.sendall(_LENGTH.pack(len(message)) + message)


def receive_frame(
    channel: socket.socket, bytes_max: int = FRAME_BYTES_MAX, deadline: float | None = None
) -> bytes | None:
    """Return the next message; None if the other end is closed, or for more than ``bytes_max``.

    Args:
        channel: the socket.
        bytes_max: size of the message, at most.
        deadline: on the monotonic clock, for the whole message; None keeps the socket's timeout.

    Raises:
        TimeoutError: the deadline or the socket's timeout has passed.
        OSError: reading failed.
    """
    try:
        return receive_bounded(channel, bytes_max, deadline)
    except LargeFrame:
        return None


def receive_bounded(
    channel: socket.socket, bytes_max: int = FRAME_BYTES_MAX, deadline: float | None = None
) -> bytes | None:
    """Return the next message as :func:`receive_frame` does, but do not take a large one for the
    end.

    Raises:
        LargeFrame: the message has more than ``bytes_max``; nothing of it was read.
        TimeoutError: the deadline or the socket's timeout has passed.
        OSError: reading failed.
    """
    head = _receive(channel, _LENGTH.size, deadline)
    if head is None:
        return None
    (size,) = _LENGTH.unpack(head)
    if size > bytes_max:
        raise LargeFrame(f"a message of {size} bytes exceeds {bytes_max}")
    return _receive(channel, size, deadline)


def _receive(channel: socket.socket, size: int, deadline: float | None) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        if deadline is not None:
            # What has arrived is read even if this process was stopped until the deadline.
            channel.settimeout(max(deadline - time.monotonic(), 0.001))
        part = channel.recv(min(size - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)
