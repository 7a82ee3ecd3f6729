"""A box whose child process is an OCI runtime."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fumehood.core.errors import InfraError
from fumehood.engines.bubblewrap.cgroups import BoxGroup
from fumehood.engines.docker.written import DiskMeter
from fumehood.engines.engine import BoxOutput, FreeSpace, NotBegun
from fumehood.engines.oci.workspace_files import WorkspaceFiles
from fumehood.engines.pausing import Pausing
from fumehood.engines.subprocess_box import KILL_TIMEOUT_S, ChildBox, shell_code

Execute = Callable[[Sequence[str], Mapping[str, str]], subprocess.Popen[bytes]]
"""Starts a command in a box, with variables in addition to those of the box."""


class OciBox(ChildBox):
    """A started box; the files of a workspace can be read while it is paused or has stopped."""

    def __init__(
        self,
        pid_file: Path,
        group: BoxGroup | None,
        files: WorkspaceFiles | None,
        execute: Execute,
        *arguments: Any,
        **options: Any,
    ) -> None:
        """Take ownership of a started runtime.

        Args:
            pid_file: which the runtime writes.
            group: of all processes of the box; None if nothing but processes limits it.
            files: of a workspace; None for the box of an agent.
            execute: starts a command in the box, and returns when it runs.
            arguments: see :class:`ChildBox`.
            options: see :class:`ChildBox`.
        """
        super().__init__(*arguments, **options)
        self._pid_file = pid_file
        self._group = group
        self._files = files
        self._execute = execute
        self._executed: list[subprocess.Popen[bytes]] = []
        self._pausing = Pausing(self._pause, self._continue)
        self._meter = DiskMeter(self._pausing.meanwhile)

    def host_pid(self) -> int | None:
        """Return the process ID of the container's first process."""
        with suppress(OSError, ValueError):
            return int(self._pid_file.read_text("ascii"))
        return super().host_pid()

    def written_bytes(self, bytes_max: int | None = None) -> int:
        """Return the size of the files that differ from the image."""
        files = self._of_workspace()
        return self._meter.measure(
            lambda: files.written_bytes(self.host_pid(), bytes_max),
            lambda: files.free_space().size_bytes,
        )

    def free_space(self) -> FreeSpace | None:
        """Return what is free on the disk to which the workspace writes."""
        try:
            return self._of_workspace().free_space()
        except (OSError, InfraError):  # The box was closed.
            return None

    def deleted(self) -> tuple[str, ...]:
        """Return the paths of the image that were deleted, sorted."""
        return self._stopped().differences()[1]

    def changed(self) -> frozenset[str]:
        """Return the paths that were added or changed."""
        return self._stopped().differences()[0]

    def copy_out(self, path: str, bytes_max: int) -> bytes | None:
        """Return a file or folder as a tar; None if there is no such path."""
        return self._stopped().copy_out(path, bytes_max)

    def pause(self) -> None:
        """Stop all programs until :meth:`resume`."""
        self._of_workspace()
        self._pausing.pause()

    def resume(self) -> None:
        """Continue all programs."""
        self._pausing.resume()

    def unpack(self, archive: bytes) -> None:
        """Unpack a tar at /, while no program runs."""
        was_paused = self._pausing.is_paused
        self.pause()
        try:
            self._stopped().unpack(archive)
        finally:
            if not was_paused:
                self.resume()

    def execute(
        self, command: Sequence[str], environment: Mapping[str, str]
    ) -> Callable[[], int | None]:
        """Start a command as root; return a function that returns its exit status, or None while
        it runs."""
        self._of_workspace()
        try:
            with self._pausing.starting():
                started = self._execute(command, environment)
        except NotBegun:
            self.kill()
            raise
        self._executed.append(started)

        def status() -> int | None:
            code = started.poll()
            return None if code is None else shell_code(code)

        return status

    def close(self) -> BoxOutput:
        """Stop everything in the box, remove it, and return its output."""
        # A runtime that still waits for a command would write its state after the folder is gone.
        for started in self._executed:
            started.kill()
            started.communicate()
        self._executed.clear()
        return super().close()

    def _kill_group(self) -> None:
        super()._kill_group()
        # With control groups version 1, a paused process does not end.
        self.resume()

    def _pause(self) -> None:
        assert self._group is not None
        try:
            self._group.pause()
        except InfraError:
            # One that has ended needs no pause.
            if self.wait(0) is None:
                raise

    def _continue(self) -> None:
        if self._group is not None:
            self._group.resume()

    def _of_workspace(self) -> WorkspaceFiles:
        if self._files is None or self._closed is not None:
            raise InfraError("only the files of a workspace that exists can be read")
        return self._files

    def _stopped(self) -> WorkspaceFiles:
        """Wait until a killed workspace has no process, which could change files meanwhile.

        Raises:
            InfraError: it runs and was neither killed nor paused, or a process does not end.
        """
        files = self._of_workspace()
        if self._pausing.is_paused:
            return files
        if self.wait(round(KILL_TIMEOUT_S * 1000) if self._killed_for else 0) is None:
            raise InfraError("the files of a workspace cannot be read while it runs")
        assert self._group is not None
        if not self._group.remove():
            raise InfraError("a process of a workspace does not end, although it was killed")
        return files
