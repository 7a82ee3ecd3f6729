"""Agents in Linux namespaces made by bubblewrap: no daemon, no image, a few milliseconds.

Memory is limited for each process, not for the box, and processor time is not limited: that takes control
groups, which take a daemon or rights that an ordinary user lacks.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from functools import cached_property

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.agent_code import ENVIRONMENT, agent_mounts, sdk_command
from fumehood.engines.bubblewrap.command import (
    PACKAGES_FOLDER,
    StatusPipe,
    View,
    box_command,
    host_view,
    view_arguments,
)
from fumehood.engines.engine import (
    AGENT_FOLDER,
    BOX_SOCKET_DIR,
    AgentKind,
    AgentSource,
    BoxOutput,
    BoxSpec,
    EngineOptions,
    Exit,
    Image,
    Isolation,
    Limits,
    Mount,
    OwnerCheck,
    Readiness,
)
from fumehood.engines.images.sdk_folder import installed_sdk
from fumehood.engines.ownership import owner_labels
from fumehood.engines.records import SessionRecords, default_folder
from fumehood.engines.seccomp import filter_program
from fumehood.engines.subprocess_box import ChildBox, Command, ProcessLauncher

_TOOLS = {"bwrap": "bubblewrap", "prlimit": "util-linux", "setpriv": "util-linux"}
"""Command → the package that has it."""
_CHECK_TIMEOUT_MS = 10_000


class BubblewrapEngine:
    """Boxes out of namespaces."""

    name = "bubblewrap"
    isolation = Isolation.NAMESPACES
    unenforced = ("memory_bytes", "cpus")

    def __init__(self, options: EngineOptions | None = None) -> None:
        self._starter = ProcessLauncher()
        self._records = SessionRecords(default_folder())

    @cached_property
    def _view(self) -> View:
        return host_view()

    def check(self) -> Readiness:
        """Start a box with nothing in it."""
        for tool, package in _TOOLS.items():
            if shutil.which(tool) is None:
                return Readiness(
                    False, f"no {tool}; install it (Debian: apt-get install {package})"
                )
        try:
            ended, output = self._trial()
        except InfraError as error:
            return Readiness(False, str(error))
        if ended is None or ended.code != 0:
            return Readiness(
                False, f"no namespaces here: {_last_line(output.stderr) or 'no answer'}"
            )
        limits = "memory is limited for each process, processor time is not"
        if filter_program() is None:
            limits += "; system calls are not filtered (Debian: apt-get install libseccomp2)"
        return Readiness(True, f"namespaces, no network, read-only; {limits}")

    def prepare(self, source: AgentSource) -> Image:
        """Return how to run ``source``, with the SDK laid out for it.

        Raises:
            InputError: it cannot be found, or only a container engine can run it.
        """
        if source.kind in (AgentKind.FOLDER, AgentKind.IMAGE):
            raise InputError(
                f"bubblewrap has no images, so it cannot run {source.name!r}; use --engine docker"
            )
        sdk = installed_sdk()
        mounts = agent_mounts(source, for_nobody=os.geteuid() == 0)
        packages = f"{AGENT_FOLDER}:{PACKAGES_FOLDER}" if mounts else PACKAGES_FOLDER
        return Image(
            "",
            sdk.name,
            sdk_command(source),
            (*mounts, Mount(sdk, PACKAGES_FOLDER)),
            ENVIRONMENT | {"PYTHONPATH": packages},
        )

    def start(self, spec: BoxSpec) -> ChildBox:
        """Start one box.

        Raises:
            InputError: there is no such command in the view.
            InfraError: the machine cannot start a process.
        """
        command = (*spec.image.command, *spec.arguments)
        view = self._view.with_mounts(
            (*spec.image.mounts, *spec.mounts, Mount(spec.socket_dir, BOX_SOCKET_DIR))
        )
        if not view.holds_command(command[0]):
            raise InputError(f"there is no command {command[0]!r} in the box")
        return self._start(view, spec.image.environment, spec.limits, command, spec.labels)

    def reap(self, is_owned: OwnerCheck) -> int:
        """Kill what the kernel has missed.

        It ends a box together with whoever started it, unless that one dies in the moment between the making
        of the box's first process and that process's asking to be ended too.
        """
        return self._records.reap(is_owned)

    def close(self) -> None:
        """End the thread that starts boxes, and any that still run."""
        self._starter.close()

    def _trial(self) -> tuple[Exit | None, BoxOutput]:
        box = self._start(self._view, {}, Limits(), ("true",), owner_labels("trial"))
        try:
            ended = box.wait(_CHECK_TIMEOUT_MS)
        finally:
            output = box.close()
        return ended, output

    def _start(
        self,
        view: View,
        environment: Mapping[str, str],
        limits: Limits,
        command: Sequence[str],
        labels: dict[str, str],
    ) -> ChildBox:
        status = StatusPipe()
        program = filter_program()
        described = _file("\0".join(view_arguments(view, environment, limits)).encode())
        filtering = _file(program) if program else None
        inherited = [described, status.inlet, *([filtering] if filtering is not None else [])]
        try:
            arguments = box_command(described, status.inlet, filtering, limits, command)
            # A box can see what its first process is called, so this says nothing.
            mark = secrets.token_hex(8)
            start = Command(
                arguments=arguments, environment={}, descriptors=tuple(inherited), mark=mark
            )
            child = self._starter.start(start)
            note = self._records.write(child.pid, labels, mark)
        except InfraError:
            status.close()
            raise
        finally:
            for descriptor in inherited:
                os.close(descriptor)

        def forget() -> None:
            status.close()
            note.unlink(missing_ok=True)

        return ChildBox(child, limits.output_bytes, read_code=status.read_code, on_close=forget)


def _file(content: bytes) -> int:
    """Return a nameless file to be read from its beginning."""
    descriptor = os.memfd_create("content")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _last_line(text: bytes) -> str:
    return text.decode(errors="replace").strip().rpartition("\n")[2]
