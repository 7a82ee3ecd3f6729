"""The docker engine: agents in hardened containers of a Docker daemon on this machine.

A box needs five requests to the daemon: create, attach, start, wait, remove. Output is read by
attaching, because a log driver would write all of it to the daemon's disk.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

import requests

from fumehood.core.errors import InfraError, InputError
from fumehood.core.user_ids import BOX_UIDS
from fumehood.engines.agent_code import ENVIRONMENT, agent_mounts, sdk_command
from fumehood.engines.box_files import HeldByBox, give_sockets, users_with
from fumehood.engines.docker.box import DockerBox
from fumehood.engines.docker.container import (
    Private,
    Runtime,
    container_config,
    container_user,
    group_parent,
    has_seccomp,
    isolation_of,
    runtime_problem,
    sandboxed_runtimes,
)
from fumehood.engines.docker.daemon import Busy, Daemon
from fumehood.engines.docker.image_settings import (
    failures_of_image,
    require_startable,
    resolved_working_dir,
    scratch_folders,
)
from fumehood.engines.docker.socket_memory import drop_group, limit_socket_memory
from fumehood.engines.engine import (
    AGENT_FOLDER,
    BOX_SOCKET_DIR,
    AgentKind,
    AgentSource,
    BoxSpec,
    EngineOptions,
    Image,
    Isolation,
    IsolationFacts,
    NotEnded,
    Orphan,
    OrphanKind,
    OwnerCheck,
    Readiness,
    WorkspaceImage,
)
from fumehood.engines.engine import Mount as BoxMount
from fumehood.engines.images.agent_python import build_agent_python
from fumehood.engines.images.folder import build_folder
from fumehood.engines.images.recipe import fetched_recipe
from fumehood.engines.images.stale import stale_images
from fumehood.engines.images.workspace import build_workspace
from fumehood.engines.kernel_queues import QueueWatch
from fumehood.engines.output import FrameReader
from fumehood.engines.ownership import OWNER_PID, RUN, owner_labels
from fumehood.engines.platforms import platform_problem
from fumehood.engines.seccomp import docker_profile
from fumehood.engines.shared_inodes import hold_shared_inodes
from fumehood.engines.start_limit import StartLimit
from fumehood.engines.user_quotas import raise_user_quotas

_INIT_INSIDE = "/sbin/docker-init"
"""Docker's place for its init; a mount at this place replaces it."""
_USERS_INSIDE = "/etc/passwd"
_PATH_FOLDERS_MAX = 64
"""Folders of PATH that are searched for a command, each with a request to the daemon."""
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Docker's default for an image that sets no PATH."""


class DockerEngine:
    """Starts boxes in containers."""

    name = "docker"
    unenforced = ()
    has_runtimes = True
    workspace_problem = ""
    has_forked_starts = False

    def __init__(self, options: EngineOptions | None = None) -> None:
        self._options = options or EngineOptions()
        self._starting = StartLimit()
        self._queues = QueueWatch()
        self._known_commands: set[tuple[str, str]] = set()

    @cached_property
    def _daemon(self) -> Daemon:
        return Daemon()

    @cached_property
    def _info(self) -> dict[str, Any]:
        return self._daemon.info()

    @property
    def isolation(self) -> Isolation:
        """``SANDBOXED_KERNEL`` if the runtime is known to bring a kernel; otherwise
        ``CONTAINER``."""
        try:
            return isolation_of(self._info, self._options.runtime)
        except (InfraError, InputError):
            return Isolation.CONTAINER

    def check(self) -> Readiness:
        """Ask the daemon for its version and the runtime."""
        if problem := platform_problem():
            return Readiness(False, problem)
        try:
            problem = runtime_problem(self._info, self._options.runtime)
        except (InfraError, InputError) as error:
            return Readiness(False, str(error))
        return Readiness(False, problem) if problem else Readiness(True, self._describe())

    def isolation_facts(self) -> IsolationFacts:
        """Return the facts of the daemon and its runtime, with the digest of the seccomp profile.

        Raises:
            InfraError: the daemon does not answer.
        """
        runtime = self._runtime()
        linux = f"Linux {self._info.get('KernelVersion', '')}".strip()
        return IsolationFacts(
            kernel=f"that of the runtime {runtime.name}, on {linux}"
            if runtime.own_kernel
            else linux,
            users=f"{BOX_UIDS.start}-{BOX_UIDS.stop - 1}",
            network="none",
            system_call_filter=(
                sha256(docker_profile().encode()).hexdigest() if runtime.installs_filter else ""
            ),
        )

    def sandboxed_runtimes(self) -> tuple[str, ...]:
        """Return the registered runtimes that bring their own kernel; none if no daemon answers."""
        try:
            return sandboxed_runtimes(self._info)
        except (InfraError, InputError):
            return ()

    def _describe(self) -> str:
        runtime = self._options.runtime or self._info["DefaultRuntime"]
        seccomp = "" if has_seccomp(self._info) else ", but without seccomp"
        return (
            f"Docker {self._info['ServerVersion']} with {runtime}: {self.isolation.value}{seccomp}"
        )

    def prepare(self, source: AgentSource) -> Image:
        """Return the agent's image, building it if necessary.

        Raises:
            InputError: the agent or its image cannot be found or built, or the image has no
                command.
            InfraError: the daemon does not answer.
        """
        progress = self._options.progress or (lambda line: None)
        match source.kind:
            case AgentKind.IMAGE if source.is_archive:
                raise InputError(
                    "the docker engine starts no image archive: use --engine oci, or, if you trust "
                    f"its author, load {source.name} with `docker load` and name the image"
                )
            case AgentKind.IMAGE:
                return self._agent_image(source.name)
            case AgentKind.FOLDER:
                return self._agent_image(build_folder(Path(source.name), progress, self._daemon))
            case AgentKind.RECIPE:
                folder = fetched_recipe(source.name, progress)
                return self._agent_image(build_folder(folder, progress, self._daemon))
            case AgentKind.BUILTIN | AgentKind.MODULE:
                mounts = agent_mounts(source, as_other_user=True)
                image = self._image(build_agent_python(progress, self._daemon))
                return replace(
                    self._inspected(image, "", is_started=False),
                    command=sdk_command(source),
                    mounts=mounts,
                    environment=ENVIRONMENT | ({"PYTHONPATH": AGENT_FOLDER} if mounts else {}),
                )

    def prepare_workspace(
        self, folder: Path, lines: Sequence[str] = (), working_dir: str = ""
    ) -> WorkspaceImage:
        """Return the image of a folder with a Dockerfile, building it if necessary; see
        :class:`~fumehood.engines.engine.WorkspaceEngine`."""
        built = self._built(folder, lines, working_dir)
        return replace(built, image=replace(built.image, command=()))

    def prepare_service(self, folder: Path) -> WorkspaceImage:
        """Return the image of a service with its command, building it if necessary.

        Raises:
            InputError: the image cannot be built, or a base image is not known here.
            InfraError: the daemon does not answer.
        """
        return self._built(folder, ())

    def _built(self, folder: Path, lines: Sequence[str], working_dir: str = "") -> WorkspaceImage:
        progress = self._options.progress or (lambda line: None)
        reference, bases = build_workspace(folder, progress, self._daemon, lines)
        image = replace(self._image(reference), scratch=())
        place = working_dir or self._working_dir(image)
        inspected = self._inspected(image, place, is_started=False, makes_folder=True)
        return WorkspaceImage(replace(image, working_dir=inspected.working_dir), bases)

    def prepare_inside(self, source: AgentSource, workspace: Image) -> Image:
        """Return the image of an agent on top of the image of a workspace, building it if
        necessary.

        Args:
            source: a folder whose Dockerfile starts from the argument FUMEHOOD_WORKSPACE.
            workspace: of the task.

        Raises:
            InputError: the image cannot be built, or has no command.
            InfraError: the daemon does not answer.
        """
        progress = self._options.progress or (lambda line: None)
        folder = Path(source.name)
        reference = build_folder(folder, progress, self._daemon, workspace.reference)
        image = self._image(reference)
        require_startable(reference, image.command)
        self._require_same_places(folder, image, workspace)
        return replace(
            image,
            scratch=(),
            working_dir=workspace.working_dir,
            environment=workspace.environment,
        )

    def _require_same_places(self, folder: Path, image: Image, workspace: Image) -> None:
        """Check that the image of an agent inside a workspace leaves the working folder of the
        workspace in its place, and adds no volume, which the limit of the disk does not count.

        Raises:
            InputError: it does not.
        """
        if added := {*image.scratch} - {*self._image(workspace.reference).scratch}:
            raise InputError(f"{folder / 'Dockerfile'}: remove the VOLUME {min(added)}")
        expected = workspace.working_dir
        found, place = (
            self._inspected(one, expected, is_started=False).working_dir
            for one in (image, workspace)
        )
        if found != place:
            raise InputError(
                f"{folder / 'Dockerfile'}: {expected} leads to {found}: leave the working folder "
                "of the workspace in its place"
            )

    def start(self, spec: BoxSpec) -> DockerBox:
        """Start one box, when fewer are starting than this machine can start at once.

        Raises:
            InputError: the image does not exist, or has no such command.
            InfraError: the daemon cannot start it.
        """
        command = (*spec.image.command, *spec.arguments)
        if not command:
            raise InputError(f"the image {spec.image.reference!r} needs a command")
        hold_shared_inodes()
        if spec.workspace is not None and not self._runtime().own_kernel:
            raise_user_quotas(self._options.progress)
        name = f"box-{secrets.token_hex(8)}"
        held = HeldByBox(spec.labels)
        with self._starting:
            try:
                private = self._private(spec, held)
                config = container_config(
                    self._daemon.client, spec, command, self._runtime(), private
                )
                container = self._daemon.create(name, config)
                if spec.workspace is not None and spec.workspace.archive:
                    self._daemon.unpack(name, spec.workspace.archive)
                self._require_command(spec.image, command[0], name)
                # gVisor counts sockets as memory, and sets no limits of a group that exists.
                runtime = self._runtime()
                if runtime.group_parent and not runtime.own_kernel:
                    held.on_release(lambda: drop_group(container))
                    limit_socket_memory(container, spec.limits)
                output = self._run(name, spec.limits.output_bytes)
            except (InfraError, InputError):
                self._daemon.remove(name)
                held.release()
                raise
        box = DockerBox(self._daemon, name, container, output, held)
        if not runtime.own_kernel:
            self._queues.add(box)
        return box

    def export(self, image: Image, file: Path) -> None:
        """Write an image into a file, as `docker save` does.

        Raises:
            InfraError: the daemon does not answer.
        """
        self._daemon.save(image.digest or image.reference, file)

    def digest_of(self, reference: str) -> str:
        """Return the digest of an image; empty if it does not exist.

        Raises:
            InfraError: the daemon does not answer.
        """
        details = self._daemon.image(reference)
        return str(details["Id"]) if details else ""

    def orphans(self, is_owned: OwnerCheck, *, images: bool = False) -> Iterable[Orphan]:
        """Return the containers whose owner is gone, and with ``images`` the stale images."""
        containers = [
            Orphan(OrphanKind.CONTAINER, container, labels.get(RUN, ""))
            for container, labels in self._daemon.containers_with(OWNER_PID)
            if not is_owned(labels)
        ]
        stale = stale_images(self._daemon) if images else []
        return [*containers, *(Orphan(OrphanKind.IMAGE, reference, "") for reference in stale)]

    def remove(self, orphan: Orphan) -> bool:
        """Remove a container or an image; return False if a container uses the image, or if the
        daemon is still removing the container."""
        match orphan.kind:
            case OrphanKind.CONTAINER:
                try:
                    self._daemon.remove(orphan.name)
                except NotEnded:
                    # An agent can cause this; a later command tries again.
                    return False
                except InfraError as error:
                    if not isinstance(error.__cause__, Busy | requests.Timeout):
                        raise
                    # A box with many files must not delay the next command, and one with a program
                    # that has not begun must not fail it.
                    return False
                drop_group(orphan.name)
            # A path is an unpacked image of another engine.
            case OrphanKind.IMAGE if not orphan.name.startswith("/"):
                return self._daemon.remove_image(orphan.name)
        return True

    def close(self) -> None:
        """Close the connections to the daemon."""
        if "_daemon" in self.__dict__:
            self._daemon.close()

    def _runtime(self) -> Runtime:
        own_kernel = self.isolation is Isolation.SANDBOXED_KERNEL
        return Runtime(
            self._options.runtime, own_kernel, has_seccomp(self._info), group_parent(self._info)
        )

    @cached_property
    def _init_program(self) -> bytes | None:
        """Docker's init, which is one file of the host in every container; None if it is not found
        or the containers have a separate kernel."""
        path = shutil.which(self._info.get("InitBinary") or "docker-init")
        return None if path is None or self._runtime().own_kernel else Path(path).read_bytes()

    def _private(self, spec: BoxSpec, held: HeldByBox) -> Private:
        user = held.user()
        inside = container_user(self._info, user)
        if os.geteuid() == 0 and inside == user and spec.workspace is None:
            give_sockets(spec.socket_dir, user)
        mounts = [BoxMount(spec.socket_dir, BOX_SOCKET_DIR)]
        mounts += held.files.copies((*spec.image.mounts, *spec.mounts))
        if self._init_program is not None:
            mounts.append(BoxMount(held.files.write(self._init_program, 0o555), _INIT_INSIDE))
        if spec.image.users:
            users = users_with(spec.image.users, inside)
            mounts.append(BoxMount(held.files.write(users), _USERS_INSIDE))
        return Private(inside, tuple(mounts))

    def _inspected(
        self, image: Image, working_dir: str, *, is_started: bool, makes_folder: bool = False
    ) -> Image:
        """Return an image with its users and its working folder.

        Args:
            image: without these.
            working_dir: the image's setting; empty for none.
            is_started: whether to start a container once, without a program of the image.
            makes_folder: whether boxes of the image make a missing working folder.

        Raises:
            InputError: its settings keep it from starting.
        """
        name = f"box-{secrets.token_hex(8)}"
        held = HeldByBox(owner_labels("trial"))
        spec = BoxSpec(image=image, socket_dir=held.files.folder(), labels=held.labels)
        command = (_INIT_INSIDE, "--version")
        try:
            private, client = self._private(spec, held), self._daemon.client
            with failures_of_image(image.reference):
                config = container_config(client, spec, command, self._runtime(), private)
                self._daemon.create(name, config | {"WorkingDir": "/"})
            folder = resolved_working_dir(
                self._daemon, name, image.reference, working_dir, may_be_missing=makes_folder
            )
            users = self._daemon.small_file(name, _USERS_INSIDE)
            if is_started:
                with failures_of_image(image.reference):
                    self._daemon.start(name)
        finally:
            self._daemon.remove(name)
            held.release()
        return replace(image, working_dir=folder, users=users)

    def _run(self, container: str, limit_bytes: int) -> FrameReader:
        output = FrameReader(self._daemon.attach(container), limit_bytes)
        try:
            self._daemon.start(container)
        except InfraError:
            output.finish(0)
            raise
        return output

    def _agent_image(self, reference: str) -> Image:
        image = self._image(reference)
        require_startable(reference, image.command)
        return self._inspected(image, self._working_dir(image), is_started=True)

    def _working_dir(self, image: Image) -> str:
        details = self._daemon.image(image.digest or image.reference) or {"Config": {}}
        return details["Config"].get("WorkingDir") or ""

    def _image(self, reference: str) -> Image:
        details = self._daemon.image(reference)
        if details is None:
            raise InputError(
                f"no built-in agent and no local image is called {reference!r}; "
                "see fumehood list, or pull or build the image"
            )
        config = details["Config"]
        command = (*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ()))
        scratch = scratch_folders(reference, config.get("Volumes") or ())
        return Image(reference, details["Id"], command, scratch=scratch)

    def _require_command(self, image: Image, command: str, container: str) -> None:
        """Check once per image that the command exists, so that the user gets an error message.

        Docker's init, the first process of the container, reports a missing command only in the
        output, and an agent could print the same text.
        """
        key = (image.digest or image.reference, command)
        if key in self._known_commands:
            return
        paths = self._paths(image, command)
        if not any(self._daemon.path_status(container, path) for path in paths):
            raise InputError(f"the image {image.reference!r} has no command {command!r}")
        self._known_commands.add(key)

    def _paths(self, image: Image, command: str) -> list[str]:
        if "/" in command:
            return [str(PurePosixPath("/", self._working_dir(image), command))]
        details = self._daemon.image(image.digest or image.reference) or {"Config": {}}
        inherited = dict(pair.split("=", 1) for pair in details["Config"].get("Env") or ())
        path = (inherited | image.environment).get("PATH", _DEFAULT_PATH)
        folders = path.split(":")[:_PATH_FOLDERS_MAX]
        return [str(PurePosixPath(folder, command)) for folder in folders if folder]
