"""Starts the containers of the oci engine."""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Any

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.box_files import HeldByBox
from fumehood.engines.bubblewrap.cgroups import (
    HELPERS,
    KILLED,
    PREFIX,
    BoxGroup,
    exit_reason,
    hierarchies,
    remove_empty_groups,
)
from fumehood.engines.engine import (
    BEGIN_TIMEOUT_S,
    BoxSpec,
    KilledOutside,
    Mount,
    NotBegun,
    Workspace,
)
from fumehood.engines.oci.box import Execute, OciBox
from fumehood.engines.oci.box_root import BoxRoot
from fumehood.engines.oci.bundle import ARCHITECTURES, bundle_config
from fumehood.engines.oci.roots import Root
from fumehood.engines.oci.runtimes import RUNTIMES, Runtime
from fumehood.engines.oci.users import StartingUser
from fumehood.engines.oci.workspace_files import WorkspaceFiles, prepare, remove_written
from fumehood.engines.platforms import platform_problem
from fumehood.engines.records import FolderRecords, SessionRecords
from fumehood.engines.shared_inodes import hold_shared_devices, hold_shared_inodes
from fumehood.engines.state_folder import disk_folder
from fumehood.engines.subprocess_box import Command, ProcessLauncher, die_with_parent

_INIT_PROGRAMS = ("docker-init", "tini-static")
"""Names of tini, a static program that forwards signals and exit statuses."""
ALWAYS_SET = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/tmp",
    "HOSTNAME": "localhost",
}
"""Variables that docker sets too, where the image does not."""
_START_TIMEOUT_S = 60.0
_POLL_MS = 3


class Containers:
    """Starts the containers of boxes. Safe to use from several threads."""

    def __init__(
        self,
        runtime: str | None,
        user: StartingUser,
        launcher: ProcessLauncher,
        records: SessionRecords,
    ) -> None:
        """Start nothing yet.

        Args:
            runtime: its name; None for the default.
            user: of this process.
            launcher: starts the runtimes.
            records: of the boxes that run.
        """
        self._name = runtime or next(iter(RUNTIMES))
        self._user = user
        self._launcher = launcher
        self._records = records
        self._workspaces: dict[str, tuple[OciBox, tuple[str, ...]]] = {}
        """The running workspaces by name, with the names that resolve to them."""

    @property
    def runtime(self) -> Runtime:
        """The runtime of boxes.

        Raises:
            InputError: there is none of this name.
        """
        if self._name not in RUNTIMES:
            raise InputError(
                f"the engine oci has no runtime {self._name!r}: use one of {', '.join(RUNTIMES)}"
            )
        return RUNTIMES[self._name]

    def problem(self) -> str:
        """Return why no box can be started here, with the remedy; empty if boxes can.

        Raises:
            InputError: there is no such runtime.
        """
        if problem := platform_problem():
            return problem
        if platform.machine() not in ARCHITECTURES:
            return f"the oci engine runs on {' and '.join(ARCHITECTURES)}, not {platform.machine()}"
        if problem := self._user.problem(self.runtime):
            return problem
        if self._init is None:
            return "tini-static is missing; install it (Debian: apt-get install tini)"
        return self.runtime.problem()

    @cached_property
    def _init(self) -> Path | None:
        path = next(filter(None, map(shutil.which, _INIT_PROGRAMS)), None)
        return None if path is None else Path(path)

    def start(
        self,
        spec: BoxSpec,
        image: Root | None,
        command: Sequence[str],
        shown: Sequence[Mount],
        held: HeldByBox,
    ) -> OciBox:
        """Start a box, and return it when its container runs.

        Args:
            spec: of the box.
            image: unpacked; None for an empty one.
            command: of the agent.
            shown: the files of the host that the box sees.
            held: by the box; the caller releases it if the box does not start.

        Raises:
            InfraError: it does not start.
        """
        runtime, workspace = self.runtime, spec.workspace
        if (init := self._init) is None:
            raise InfraError(self.problem())
        hold_shared_inodes()
        if self._user.sees_devices:
            hold_shared_devices()
        group = self._group(spec, held)
        folder = None if image is None else image.folder
        root = self._user.root(folder, init, held, None if workspace is None else _disk(held))
        files = None
        if workspace is not None and image is not None:
            files = self._files(root, image, spec, workspace, held)
            if group is not None:
                # Nothing removes files while a process makes others.
                held.on_release(group.require_removed)
        config = self._config(spec, image, root, command, shown, self._user.inside or held.user())
        config = self._user.adapted(config, spec.limits, has_group=group is not None)
        bundle = _bundle(held, config)
        pid_file = bundle / "pid"
        entrances = [] if runtime.makes_groups or group is None else group.entrances()
        line = runtime.command(root, bundle, pid_file, is_workspace=workspace is not None)
        process = self._user.command(held, root, folder, init, line)
        process = replace(process, arguments=_entering(entrances, process.arguments))
        child = self._launcher.start(process)
        record = self._records.write(child.pid, held.labels, root.mark)
        held.on_release(lambda: record.unlink(missing_ok=True))
        box = OciBox(
            pid_file,
            group,
            files,
            self._executor(config, held, entrances, root),
            child,
            spec.limits.output_bytes,
            read_code=lambda code: _exit_status(code, group),
            read_reason=lambda code: exit_reason(code, group),
            on_close=held.release,
        )
        first = _wait_for_start(box, pid_file, runtime)
        try:
            if box.hold_first(first):
                self._records.write(child.pid, held.labels, root.mark, first)
        except (InfraError, OSError):
            box.close()
            raise
        if workspace is not None:
            self._workspaces[box.name] = box, self._hosts(workspace)
            held.on_release(lambda: self._workspaces.pop(box.name, None))
        return box

    def _executor(
        self, config: dict[str, Any], held: HeldByBox, entrances: Sequence[Path], root: BoxRoot
    ) -> Execute:
        """Return what starts a further program in a container, and returns when it runs."""

        def execute(words: Sequence[str], added: Mapping[str, str]) -> Popen[bytes]:
            variables = config["process"]["env"] + [f"{key}={added[key]}" for key in added]
            process = config["process"] | {"args": list(words), "env": variables}
            file = held.files.write(json.dumps(process).encode())
            begun = file.with_name(f"{file.name}.pid")
            line = _entering(entrances, self.runtime.execution(root, file, begun), root.null)
            program = Command(arguments=line, environment={}, stdin=root.null)
            return _begun(self._launcher.start(program), begun)

        return execute

    def _config(
        self,
        spec: BoxSpec,
        image: Root | None,
        root: BoxRoot,
        command: Sequence[str],
        shown: Sequence[Mount],
        user: int,
    ) -> dict[str, Any]:
        """Return the configuration of a container."""
        runtime, workspace, own = self.runtime, spec.workspace, dict[str, str]()
        if workspace is not None and image is not None:
            own = {"HOME": image.home} | image.variables
        return bundle_config(
            root,
            command,
            user=user,
            environment=ALWAYS_SET | own | spec.image.environment,
            working_dir=spec.image.working_dir,
            mounts=shown,
            scratch=spec.image.scratch,
            limits=spec.limits,
            group=f"/{PREFIX}{user}" if runtime.makes_groups else "",
            shares_null=runtime.shares_null,
            is_workspace=workspace is not None,
            has_terminals=runtime.own_kernel or bool(workspace and workspace.terminals),
            network=self._network_of(workspace),
        )

    def _network_of(self, workspace: Workspace | None) -> str:
        """Return the network namespace that a workspace shares; empty for a new one.

        Raises:
            InfraError: the box that has it does not run.
        """
        if workspace is None or not workspace.network_of:
            return ""
        box, _ = self._workspaces.get(workspace.network_of, (None, ()))
        pid = None if box is None or box.wait(0) is not None else box.host_pid()
        if pid is None:
            raise InfraError(f"the box {workspace.network_of} does not run")
        return f"/proc/{pid}/ns/net"

    def _hosts(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the names that resolve to a box: boxes with one network have the same."""
        _, names = self._workspaces.get(workspace.network_of, (None, ()))
        return (*workspace.hosts, *names)

    def _group(self, spec: BoxSpec, held: HeldByBox) -> BoxGroup | None:
        """Make the control group of a box; None for an ordinary user who may not."""
        runtime, writable_hierarchies = self.runtime, hierarchies()
        if writable_hierarchies is None:
            if problem := self._user.problem(runtime):
                raise InfraError(problem)
            return None
        can_pause = spec.workspace is not None
        group = BoxGroup(writable_hierarchies, held.user(), can_pause=can_pause)
        processes = spec.limits.processes + runtime.tasks - HELPERS
        group.make(replace(spec.limits, processes=processes))
        if runtime.makes_groups:
            held.on_release(lambda: remove_empty_groups(held.user()))
        held.on_release(group.require_removed)
        return group

    def _files(
        self, root: BoxRoot, image: Root, spec: BoxSpec, workspace: Workspace, held: HeldByBox
    ) -> WorkspaceFiles:
        """Return the files of a workspace, and make those with which it starts."""
        flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
        handle = self._launcher.call(lambda: os.open(root.merged, flags))
        held.on_release(lambda: os.close(handle))
        seen = Root(Path(f"/proc/self/fd/{handle}"))
        prepare(seen, spec.image.working_dir, workspace.archive, self._hosts(workspace))
        return WorkspaceFiles(root, seen, image)


def _bundle(held: HeldByBox, config: dict[str, Any]) -> Path:
    """Make the folder of a container with its configuration."""
    bundle = held.files.folder()
    (bundle / "config.json").write_text(json.dumps(config), "utf-8")
    return bundle


def _disk(held: HeldByBox) -> Path:
    """Make a folder on a disk for what a workspace writes."""
    records = FolderRecords(below=disk_folder())
    folder = records.make(held.labels)
    held.on_release(lambda: records.remove(folder))
    held.on_release(lambda: remove_written(folder))
    return folder


def _entering(
    entrances: Iterable[Path], line: Sequence[str], output: Path | None = None
) -> list[str]:
    """Return a command that enters control groups before it becomes another one, which writes to a
    file if ``output`` is one, and which the kernel kills with this process."""
    enter = "".join(f"echo 0 > {file} && " for file in entrances)
    redirect = f" > {output} 2>&1" if output else ""
    return ["/bin/sh", "-c", f'{enter}exec "$@"{redirect}', "sh", *die_with_parent(), *line]


def _wait_for_start(box: OciBox, pid_file: Path, runtime: Runtime) -> int:
    """Wait until the container runs, and return the process ID of its process 1.

    Raises:
        InfraError: the runtime did not start it.
    """
    deadline = time.monotonic() + _START_TIMEOUT_S
    while (first := _number_in(pid_file)) is None:
        if box.wait(_POLL_MS) is not None and _number_in(pid_file) is None:
            reason = box.close().stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise InfraError(f"{runtime.name} could not start a box: {reason or 'no message'}")
        if time.monotonic() > deadline:
            box.close()
            raise InfraError(f"{runtime.name} did not start a box in {_START_TIMEOUT_S:.0f} s")
    return first


def _number_in(file: Path) -> int | None:
    """Return the number that a file contains; None if it is not written yet."""
    with suppress(OSError, ValueError):
        return int(file.read_text("ascii"))
    return None


def _begun(runtime: Popen[bytes], pid_file: Path) -> Popen[bytes]:
    """Return a runtime when its program runs in the container, or when it has ended itself.

    Raises:
        NotBegun: neither happens in time; the runtime was killed.
    """
    deadline = time.monotonic() + BEGIN_TIMEOUT_S
    while not pid_file.exists():
        if time.monotonic() > deadline:
            runtime.kill()
            runtime.communicate()
            raise NotBegun(f"a command did not begin in {BEGIN_TIMEOUT_S:.0f} s")
        with suppress(TimeoutExpired):
            runtime.wait(_POLL_MS / 1000)
            break
    return runtime


def _exit_status(code: int, group: BoxGroup | None) -> int:
    """Return the exit status of the agent, given that of the runtime.

    Raises:
        InfraError: another process killed the runtime.
    """
    if code >= 0:
        return code
    if group is not None and group.ran_out_of_memory():
        return KILLED
    raise KilledOutside("the box was killed from outside")
