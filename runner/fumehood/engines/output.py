"""Reads the output of a box to its end and keeps a bounded part of it.

An agent that prints without end must neither fill the host's memory nor block, so all output is
read and counted, and the middle is dropped. The first lines show what the agent tried, the last why
it failed.
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
"""Read in one call."""


class CappedOutput:
    """The beginning and the end of one stream, together ``limit_bytes``."""

    def __init__(self, limit_bytes: int) -> None:
        self.total_bytes = 0
        """Written in total."""
        self._head = bytearray()
        self._tail = bytearray()
        self._head_bytes_max = limit_bytes - limit_bytes // 2
        self._tail_bytes_max = limit_bytes // 2

    def write(self, chunk: bytes) -> None:
        """Append the next part of the stream."""
        self.total_bytes += len(chunk)
        free = self._head_bytes_max - len(self._head)
        if free:
            self._head += chunk[:free]
            chunk = chunk[free:]
        if chunk and self._tail_bytes_max:
            self._tail += chunk[-self._tail_bytes_max :]
            # Cut only when the buffer has doubled, so each byte is moved once on average.
            if len(self._tail) > 2 * self._tail_bytes_max:
                del self._tail[: -self._tail_bytes_max]

    def kept(self) -> bytes:
        """Return the kept bytes."""
        tail = self._tail[-self._tail_bytes_max :] if self._tail_bytes_max else b""
        return bytes(self._head + tail)


class PipeReader:
    """Reads the two pipes of a child in a separate thread, and closes them."""

    def __init__(self, stdout: int, stderr: int, limit_bytes: int) -> None:
        """Start reading.

        Args:
            stdout: file descriptor, owned by the reader.
            stderr: file descriptor, owned by the reader.
            limit_bytes: kept of each pipe.
        """
        self._streams = {stdout: CappedOutput(limit_bytes), stderr: CappedOutput(limit_bytes)}
        self._outputs = tuple(self._streams.values())
        self._stop = os.eventfd(0)
        self._thread = Thread(target=self._read, name="box-output", daemon=True)
        self._thread.start()

    def finish(self, timeout_s: float) -> BoxOutput:
        """Return the output after both pipes have ended or ``timeout_s`` is over.

        A process that survived may hold a pipe open; the reader does not wait for it.
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
                    self._read_from(descriptor, ready)
        for descriptor in self._streams:
            os.close(descriptor)

    def _read_from(self, descriptor: int, ready: selectors.BaseSelector) -> None:
        chunk = os.read(descriptor, READ_BYTES)
        if chunk:
            self._streams[descriptor].write(chunk)
        else:
            ready.unregister(descriptor)
            del self._streams[descriptor]
            os.close(descriptor)


class FrameReader:
    """Reads the multiplexed stream of a container in a separate thread, and closes it.

    Frames are as in the Docker Engine API, "Attach to a container": one byte for the stream (1
    standard output, 2 standard error), three zeros, four bytes for the length, big-endian, then the
    payload.
    """

    _HEADER = struct.Struct(">BxxxL")
    _STDERR = 2

    def __init__(self, stream: socket.socket, limit_bytes: int) -> None:
        """Start reading; the reader owns the stream, and keeps ``limit_bytes`` of each output."""
        self._stream = stream
        self._stdout = CappedOutput(limit_bytes)
        self._stderr = CappedOutput(limit_bytes)
        self._thread = Thread(target=self._read, name="box-output", daemon=True)
        self._thread.start()

    def finish(self, timeout_s: float) -> BoxOutput:
        """Return the output after the stream has ended or ``timeout_s`` is over."""
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            with suppress(OSError):  # The daemon may have closed it meanwhile.
                self._stream.shutdown(socket.SHUT_RDWR)
            self._thread.join()
        self._stream.close()
        return _box_output(self._stdout, self._stderr)

    def _frames(self) -> io.BufferedReader:
        return io.BufferedReader(socket.SocketIO(self._stream, "r"), READ_BYTES)

    def _read(self) -> None:
        # The output of a dead daemon is lost; waiting for the box reports the failure.
        with suppress(ConnectionError), self._frames() as frames:
            while len(header := frames.read(self._HEADER.size)) == self._HEADER.size:
                kind, left_bytes = self._HEADER.unpack(header)
                output = self._stderr if kind == self._STDERR else self._stdout
                while left_bytes and (chunk := frames.read1(min(left_bytes, READ_BYTES))):
                    output.write(chunk)
                    left_bytes -= len(chunk)


def _box_output(stdout: CappedOutput, stderr: CappedOutput) -> BoxOutput:
    return BoxOutput(stdout.kept(), stderr.kept(), stdout.total_bytes, stderr.total_bytes)
