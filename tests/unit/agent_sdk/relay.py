"""A connection that can be cut: forwards bytes between two Unix sockets until it is cut."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path
from threading import Lock, Thread
from typing import Self


class Relay:
    """Listens at ``path`` and forwards connections to ``target``. A context manager.

    It closes the first ``refusals`` connections at once.
    """

    def __init__(self, path: Path, target: Path, refusals: int = 0) -> None:
        self._target = target
        self._refusals = refusals
        self._ends: list[socket.socket] = []
        self.accepted = 0
        """Number of connections, including those that were closed or cut."""
        self._lock = Lock()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._threads = [Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join()

    def cut(self) -> None:
        """Break every connection that is open now; new ones are let through."""
        with self._lock:
            ends, self._ends = self._ends, []
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self.accepted < self._refusals:
                self.accepted += 1
                near.close()
                continue
            far = socket.socket(socket.AF_UNIX)
            far.connect(str(self._target))
            with self._lock:
                self.accepted += 1
                self._ends += [near, far]
            for source, sink in ((near, far), (far, near)):
                thread = Thread(target=_forward, args=(source, sink))
                self._threads.append(thread)
                thread.start()


def _forward(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
    source.close()
