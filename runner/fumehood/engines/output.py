"""What a box prints, read to its end and kept up to a bound.

An agent that prints without end must neither fill the host nor stand still, so everything is read, counted
and mostly dropped. Both ends are kept: the first lines say what was tried, the last say why it failed.
"""

from __future__ import annotations

import io
import os
import selectors
import socket
import struct
from contextlib import suppress
from threading import Thread

from fumehood.engines.engine import BoxOutput

READ_BYTES = 256 * 1024
"""Taken at once."""


class CappedOutput:
    """One stream: its first half and its last half, of ``limit_bytes`` together."""

    def __init__(self, limit_bytes: int) -> None:
        self.total_bytes = 0
        """Written in all."""
        self._head = bytearray()
        self._tail = bytearray()
        self._head_bytes_max = limit_bytes - limit_bytes // 2
        self._tail_bytes_max = limit_bytes // 2

    def write(self, chunk: bytes) -> None:
        """Take the next piece of the stream."""
        self.total_bytes += len(chunk)
        room = self._head_bytes_max - len(self._head)
        if room:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk and self._tail_bytes_max:
            self._tail += chunk[-self._tail_bytes_max :]
            # Cut now and then, not always: each byte is moved once on average.
            if len(self._tail) > 2 * self._tail_bytes_max:
                del self._tail[: -self._tail_bytes_max]

    def kept(self) -> bytes:
        """Return what is kept."""
        tail = self._tail[-self._tail_bytes_max :] if self._tail_bytes_max else b""
        return bytes(self._head + tail)


class PipeReader:
    """Reads a child's two pipes in a thread of its own, and closes them."""

    def __init__(self, stdout: int, stderr: int, limit_bytes: int) -> None:
        """Start reading.

        Args:
            stdout: file descriptor, owned from now on.
            stderr: file descriptor, owned from now on.
            limit_bytes: kept of each.
        """
        self._streams = {stdout: CappedOutput(limit_bytes), stderr: CappedOutput(limit_bytes)}
        self._outputs = tuple(self._streams.values())
        self._stop = os.eventfd(0)
        self._thread = Thread(target=self._read, name="box-output", daemon=True)
        self._thread.start()

    def finish(self, timeout_s: float) -> BoxOutput:
        """Return what was printed, once both pipes are at their end or ``timeout_s`` is over.

        A process that got away may hold a pipe open; it is not waited for.
        """
        self._thread.join(timeout_s)
        os.eventfd_write(self._stop, 1)
        self._thread.join()
        os.close(self._stop)
        return _box_output(*self._outputs)

    def _read(self) -> None:
        with selectors.DefaultSelector() as ready:
            ready.register(self._stop, selectors.EVENT_READ)
            for descriptor in self._streams:
                ready.register(descriptor, selectors.EVENT_READ)
            while self._streams:
                descriptors = [key.fd for key, _ in ready.select()]
                if self._stop in descriptors:
                    break
                for descriptor in descriptors:
                    self._take(descriptor, ready)
        for descriptor in self._streams:
            os.close(descriptor)

    def _take(self, descriptor: int, ready: selectors.BaseSelector) -> None:
        chunk = os.read(descriptor, READ_BYTES)
        if chunk:
            self._streams[descriptor].write(chunk)
        else:
            ready.unregister(descriptor)
            del self._streams[descriptor]
            os.close(descriptor)


class FrameReader:
    """Reads a container's multiplexed stream in a thread of its own, and closes it.

    Frames are as in the Docker Engine API, "Attach to a container": one byte for the stream (1 standard
    output, 2 standard error), three zeros, four bytes for the length, big-endian, then the payload.
    """

    _HEADER = struct.Struct(">BxxxL")
    _STDERR = 2

    def __init__(self, stream: socket.socket, limit_bytes: int) -> None:
        """Start reading.

        Args:
            stream: owned from now on.
            limit_bytes: kept of standard output and of standard error, each.
        """
        self._stream = stream
        self._stdout = CappedOutput(limit_bytes)
        self._stderr = CappedOutput(limit_bytes)
        self._thread = Thread(target=self._read, name="box-output", daemon=True)
        self._thread.start()

    def finish(self, timeout_s: float) -> BoxOutput:
        """Return what was printed, once the stream is at its end or ``timeout_s`` is over."""
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            with suppress(OSError):  # The other end may have gone in this moment.
                self._stream.shutdown(socket.SHUT_RDWR)
            self._thread.join()
        self._stream.close()
        return _box_output(self._stdout, self._stderr)

    def _frames(self) -> io.BufferedReader:
        return io.BufferedReader(socket.SocketIO(self._stream, "r"), READ_BYTES)

    def _read(self) -> None:
        # A daemon that dies takes the rest with it; waiting for the box will say so.
        with suppress(ConnectionError), self._frames() as frames:
            while len(header := frames.read(self._HEADER.size)) == self._HEADER.size:
                kind, left_bytes = self._HEADER.unpack(header)
                output = self._stderr if kind == self._STDERR else self._stdout
                while left_bytes and (chunk := frames.read1(min(left_bytes, READ_BYTES))):
                    output.write(chunk)
                    left_bytes -= len(chunk)


def _box_output(stdout: CappedOutput, stderr: CappedOutput) -> BoxOutput:
    return BoxOutput(stdout.kept(), stderr.kept(), stdout.total_bytes, stderr.total_bytes)
