"""Whole messages over a stream socket: four bytes with the length, big-endian, then as many bytes.

The framing of :mod:`multiprocessing.connection`, so that a client needs no more than the standard library.
"""

from __future__ import annotations

import socket
import struct

_LENGTH = struct.Struct("!i")
_CHUNK_BYTES = 1 << 16


class Frames:
    """One end of a connection. For one thread."""

    def __init__(self, connection: socket.socket, message_bytes: int) -> None:
        """Speak over a connected socket.

        Args:
            connection: a stream socket; closed with this.
            message_bytes: longest message that is taken; whoever sends a longer one has hung up.
        """
        self._socket = connection
        self._message_bytes = message_bytes
        self._buffer = b""

    def fileno(self) -> int:
        """Return the descriptor, for those who wait for several connections."""
        return self._socket.fileno()

    def set_timeout(self, seconds: float | None) -> None:
        """Make ``receive`` raise TimeoutError when nothing comes for so long; what has come is kept."""
        self._socket.settimeout(seconds)

    def send(self, message: bytes) -> None:
        """Send one message.

        Raises:
            OSError: the other side has hung up.
        """
        self._socket.sendall(_LENGTH.pack(len(message)) + message)

    def receive(self) -> bytes | None:
        """Return the next message; None when the other side has hung up.

        Raises:
            TimeoutError: nothing came in time.
        """
        while True:
            if len(self._buffer) >= _LENGTH.size:
                end = _LENGTH.size + _LENGTH.unpack_from(self._buffer)[0]
                if not _LENGTH.size <= end <= _LENGTH.size + self._message_bytes:
                    return None
                if len(self._buffer) >= end:
                    message, self._buffer = self._buffer[_LENGTH.size : end], self._buffer[end:]
                    return message
            if not self._read_more():
                return None

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _read_more(self) -> bool:
        try:
            chunk = self._socket.recv(max(_CHUNK_BYTES, len(self._buffer)))
        except ConnectionError:
            return False
        self._buffer += chunk
        return bool(chunk)
