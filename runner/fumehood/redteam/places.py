"""The boxes of an episode from which attacks run: agent, workspace and verifier.

What workspaces and verifiers write on the disk is limited as in a run.
"""

from __future__ import annotations

import io
import socket
import tarfile
from contextlib import ExitStack, suppress
from dataclasses import replace
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Self

from fumehood.core.errors import InfraError
from fumehood.engines.engine import Box, BoxSpec, BoxStarter, Limits, Workspace, WorkspaceBox
from fumehood.orchestrator.workspaces.disk_watch import wait_within_limit
from fumehood.orchestrator.workspaces.episode_boxes import AgentBox
from fumehood.worlds.workspace import SOCKET_NAME

LONGEST_S = 3600.0
"""A box of a probe runs for a shorter time."""


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
        box = self._engine.start(
            replace(
                spec,
                socket_dir=self._folder / "bin" if is_verifier else self._folder,
                arguments=(*spec.arguments, *seat),
                workspace=Workspace(archive=_tests() if is_verifier else b""),
            )
        )
        assert isinstance(box, WorkspaceBox)
        watching = Thread(target=_keep_within_limit, args=(box, spec.limits), daemon=True)
        watching.start()

        def end() -> None:
            box.kill()
            watching.join()

        return AgentBox(box, end)


def _keep_within_limit(box: WorkspaceBox, limits: Limits) -> None:
    """Kill a workspace that writes too much, or that cannot be measured."""
    try:
        _, excess = wait_within_limit(box, "the workspace", limits.tmp_bytes, LONGEST_S)
    except InfraError as error:
        excess = str(error)
    if excess:
        with suppress(InfraError):  # The end of the attack removes the box.
            box.kill()


def _tests() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("tests/test.sh"))
    return content.getvalue()
