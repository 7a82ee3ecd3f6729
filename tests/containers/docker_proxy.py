"""A proxy to the Docker daemon that can count connections, lose an answer and block."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Self

DAEMON = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")


class DockerProxy:
    """Forwards bytes between a new socket and that of the daemon."""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder / "docker.sock")
        self.connections = 0
        """Accepted so daemon."""
        self.lost: list[bytes] = []
        """First lines of the requests whose answers were lost."""
        self._lose_answer_to: bytes | None = None
        self._refuses = False
        self._open_gate = Event()
        self._open_gate.set()
        self._ends: list[socket.socket] = []
        self._lock = Lock()
        self._open = ExitStack()
        self._listening = self._open.enter_context(socket.socket(socket.AF_UNIX))
        self._listening.bind(self.address)
        self._listening.listen()
        Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._open.close()

    def refuse(self) -> None:
        """Close all connections and accept no more."""
        self._refuses = True
        for end in self._ends:
            _hang_up(end)

    def accept_again(self) -> None:
        """Accept connections again."""
        self._refuses = False

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Forward nothing for a while, as a stuck daemon does."""
        self._open_gate.clear()
        try:
            yield
        finally:
            self._open_gate.set()

    def lose_next_answer_to(self, request: bytes) -> None:
        """Close the connection before the answer to the next request with this text in its first
        line."""
        self._lose_answer_to = request

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self.connections += 1
                if self._refuses:
                    _hang_up(client)
                    continue
                daemon = socket.socket(socket.AF_UNIX)
                daemon.connect(DAEMON)
                for end in (client, daemon):
                    self._ends.append(end)
                    self._open.callback(_hang_up, end)
                closed = _Closed()
                Thread(
                    target=self._forward_requests, args=(client, daemon, closed), daemon=True
                ).start()
                Thread(
                    target=self._forward_answers, args=(client, daemon, closed), daemon=True
                ).start()

    def _forward_requests(
        self, client: socket.socket, daemon: socket.socket, closed: _Closed
    ) -> None:
        with suppress(OSError):
            while piece := client.recv(65536):
                with self._lock:
                    if self._lose_answer_to and self._lose_answer_to in piece.partition(b"\r\n")[0]:
                        self.lost.append(piece.partition(b"\r\n")[0])
                        self._lose_answer_to = None
                        closed.is_set = True
                self._open_gate.wait()
                daemon.sendall(piece)
        _hang_up(daemon)

    def _forward_answers(
        self, client: socket.socket, daemon: socket.socket, closed: _Closed
    ) -> None:
        with suppress(OSError):
            while (piece := daemon.recv(65536)) and not closed.is_set:
                self._open_gate.wait()
                client.sendall(piece)
        _hang_up(client)


class _Closed:
    is_set = False


def _hang_up(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
