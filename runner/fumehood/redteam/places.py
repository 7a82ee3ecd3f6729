"""The boxes of an episode from which attacks run: agent, workspace and verifier."""

from __future__ import annotations

import io
import socket
import tarfile
from contextlib import ExitStack
from dataclasses import replace
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from fumehood.engines.engine import Box, BoxSpec, BoxStarter, Workspace
from fumehood.worlds.workspace import SOCKET_NAME


class Place(Enum):
    """The box in which an attack runs."""

    AGENT = "agent (A)"
    WORKSPACE = "workspace (B)"
    VERIFIER = "verifier (C)"


class BoxesAt:
    """Starts boxes with the settings of a place. A context manager.

    A workspace sees a folder with the socket of its service, and a verifier a folder without a
    socket and the tests. Programs in both are root.
    """

    def __init__(self, engine: BoxStarter, place: Place) -> None:
        self._engine = engine
        self._place = place
        self._to_close = ExitStack()

    def __enter__(self) -> Self:
        self._folder = Path(self._to_close.enter_context(TemporaryDirectory()))
        self._folder.chmod(0o755)
        (self._folder / "bin").mkdir(mode=0o755)
        listener = self._to_close.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(self._folder / SOCKET_NAME))
        listener.listen(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._to_close.close()

    def start(self, spec: BoxSpec) -> Box:
        """Start a box at this place; the agent gets the path of its seat's folder on the host."""
        if self._place is Place.AGENT:
            return self._engine.start(spec)
        is_verifier = self._place is Place.VERIFIER
        # An attack without arguments looks for words that reveal the harness.
        seat = (f"seat={spec.socket_dir}",) if spec.arguments else ()
        return self._engine.start(
            replace(
                spec,
                socket_dir=self._folder / "bin" if is_verifier else self._folder,
                arguments=(*spec.arguments, *seat),
                workspace=Workspace(archive=_tests() if is_verifier else b""),
            )
        )


def _tests() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("tests/test.sh"))
    return content.getvalue()
