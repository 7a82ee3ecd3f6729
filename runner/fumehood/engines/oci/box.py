"""A box whose child process is an OCI runtime."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from fumehood.core.errors import InfraError
from fumehood.engines.bubblewrap.cgroups import BoxGroup
from fumehood.engines.oci.workspace_files import WorkspaceFiles
from fumehood.engines.subprocess_box import KILL_TIMEOUT_S, ChildBox


class OciBox(ChildBox):
    """A started box; the files of a workspace can be read after it has stopped."""

    def __init__(
        self,
        pid_file: Path,
        group: BoxGroup,
        files: WorkspaceFiles | None,
        *arguments: Any,
        **options: Any,
    ) -> None:
        """Take ownership of a started runtime.

        Args:
            pid_file: which the runtime writes.
            group: of all processes of the box.
            files: of a workspace; None for the box of an agent.
            arguments: see :class:`ChildBox`.
            options: see :class:`ChildBox`.
        """
        super().__init__(*arguments, **options)
        self._pid_file = pid_file
        self._group = group
        self._files = files

    def host_pid(self) -> int | None:
        """Return the process ID of the container's first process."""
        with suppress(OSError, ValueError):
            return int(self._pid_file.read_text("ascii"))
        return super().host_pid()

    def written_bytes(self) -> int:
        """Return the size of the files that differ from the image."""
        return self._of_workspace().written_bytes(self.host_pid())

    def deleted(self) -> tuple[str, ...]:
        """Return the paths of the image that were deleted, sorted."""
        return self._stopped().differences()[1]

    def changed(self) -> frozenset[str]:
        """Return the paths that were added or changed."""
        return self._stopped().differences()[0]

    def copy_out(self, path: str, bytes_max: int) -> bytes | None:
        """Return a file or folder as a tar; None if there is no such path."""
        return self._stopped().copy_out(path, bytes_max)

    def _of_workspace(self) -> WorkspaceFiles:
        if self._files is None or self._closed is not None:
            raise InfraError("only the files of a workspace that exists can be read")
        return self._files

    def _stopped(self) -> WorkspaceFiles:
        """Wait until a killed workspace has no process, which could change files meanwhile.

        Raises:
            InfraError: it still runs and was not killed, or a process does not end.
        """
        files = self._of_workspace()
        if self.wait(round(KILL_TIMEOUT_S * 1000) if self._was_killed else 0) is None:
            raise InfraError("the files of a workspace cannot be read while it runs")
        if not self._group.remove():
            raise InfraError("a process of a workspace does not end, although it was killed")
        return files
