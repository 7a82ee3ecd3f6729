"""Shared by the tests of all engines: boxes that run Python code, and a server on their socket."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from fumehood.engines.engine import (
    BOX_SOCKET_DIR,
    Box,
    BoxOutput,
    BoxSpec,
    Engine,
    Exit,
    Image,
    Limits,
    Mount,
)

PATIENCE_MS = 60_000
"""Timeout for steps that take a second on an idle machine."""
SOCKET = f"{BOX_SOCKET_DIR}/grpc.sock"


@dataclass
class Boxes:
    """Starts boxes of one engine and closes them at the end."""

    engine: Engine
    image: Image
    socket_dir: Path
    labels: dict[str, str]
    cleaning: ExitStack

    def start(
        self,
        code: str,
        *arguments: str,
        limits: Limits | None = None,
        mounts: tuple[Mount, ...] = (),
    ) -> Box:
        """Start a box that runs ``code``; the arguments are its ``sys.argv[1:]``."""
        box = self.engine.start(self.spec(code, *arguments, limits=limits, mounts=mounts))
        self.cleaning.callback(box.close)
        return box

    def spec(
        self,
        code: str,
        *arguments: str,
        limits: Limits | None = None,
        mounts: tuple[Mount, ...] = (),
    ) -> BoxSpec:
        image = replace(self.image, command=(self.image.command[0], "-c", code))
        return BoxSpec(
            image=image,
            socket_dir=self.socket_dir,
            arguments=arguments,
            mounts=mounts,
            limits=limits or Limits(),
            labels=self.labels,
        )

    def run(
        self,
        code: str,
        *arguments: str,
        limits: Limits | None = None,
        mounts: tuple[Mount, ...] = (),
    ) -> tuple[Exit, BoxOutput]:
        """Run ``code`` to its end."""
        box = self.start(code, *arguments, limits=limits, mounts=mounts)
        ended = box.wait(PATIENCE_MS)
        assert ended is not None, "the box did not end"
        return ended, box.close()

    def says(self, code: str, *arguments: str, limits: Limits | None = None) -> str:
        """Run ``code``, which must succeed, and return what it printed."""
        ended, output = self.run(code, *arguments, limits=limits)
        assert ended.code == 0, output.stderr.decode()
        return output.stdout.decode().strip()


class Listener:
    """A real server on the socket of a box."""

    def __init__(self, socket_dir: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(socket_dir / "grpc.sock"))
        (socket_dir / "grpc.sock").chmod(0o666)
        self._socket.listen()
        self._socket.settimeout(PATIENCE_MS / 1000)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def accept(self) -> socket.socket:
        connection, _ = self._socket.accept()
        connection.settimeout(PATIENCE_MS / 1000)
        return connection


def hangs_up(connection: socket.socket) -> bool:
    """Wait until the other side closes the connection, as a killed process does; False on
    timeout."""
    try:
        while connection.recv(4096):
            pass
    except TimeoutError:
        return False
    except ConnectionResetError:
        pass
    return True
