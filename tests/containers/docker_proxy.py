"""A real road to the Docker daemon, on which a test can count travellers, lose an answer, and stop all."""

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
        """Accepted so far."""
        self.lost: list[bytes] = []
        """First lines of the questions whose answers were lost."""
        self._lose_answer_to: bytes | None = None
        self._refuses = False
        self._passable = Event()
        self._passable.set()
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
        """Let travellers through again."""
        self._refuses = False

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Keep everybody where they are for a while, as a daemon does that is stuck."""
        self._passable.clear()
        try:
            yield
        finally:
            self._passable.set()

    def lose_next_answer_to(self, question: bytes) -> None:
        """Cut the road before the answer to the next question with this in its first line."""
        self._lose_answer_to = question

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                self.connections += 1
                if self._refuses:
                    _hang_up(near)
                    continue
                far = socket.socket(socket.AF_UNIX)
                far.connect(DAEMON)
                for end in (near, far):
                    self._ends.append(end)
                    self._open.callback(_hang_up, end)
                cut = _Cut()
                Thread(target=self._questions, args=(near, far, cut), daemon=True).start()
                Thread(target=self._answers, args=(near, far, cut), daemon=True).start()

    def _questions(self, near: socket.socket, far: socket.socket, cut: _Cut) -> None:
        with suppress(OSError):
            while piece := near.recv(65536):
                with self._lock:
                    if self._lose_answer_to and self._lose_answer_to in piece.partition(b"\r\n")[0]:
                        self.lost.append(piece.partition(b"\r\n")[0])
                        self._lose_answer_to = None
                        cut.is_made = True
                self._passable.wait()
                far.sendall(piece)
        _hang_up(far)

    def _answers(self, near: socket.socket, far: socket.socket, cut: _Cut) -> None:
        with suppress(OSError):
            while (piece := far.recv(65536)) and not cut.is_made:
                self._passable.wait()
                near.sendall(piece)
        _hang_up(near)


class _Cut:
    is_made = False


def _hang_up(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
