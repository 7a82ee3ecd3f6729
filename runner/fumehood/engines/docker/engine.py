"""Agents in hardened containers, made by a Docker engine on this machine with any runtime it knows.

A box costs five questions to the daemon: create, attach, start, wait, remove. Attaching is the cheapest way
to what a box prints: a log driver would have the daemon write it to disk first, and could not count it.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from threading import BoundedSemaphore, Lock
from typing import Any

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.agent_code import ENVIRONMENT, agent_mounts, sdk_command
from fumehood.engines.docker.container import (
    Runtime,
    container_config,
    has_seccomp,
    isolation_of,
    own_kernels,
    runtime_trouble,
)
from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.engine import (
    AGENT_FOLDER,
    AgentKind,
    AgentSource,
    BoxOutput,
    BoxSpec,
    EngineOptions,
    Exit,
    ExitReason,
    Image,
    Isolation,
    OwnerCheck,
    Readiness,
)
from fumehood.engines.images.agent_python import build_agent_python
from fumehood.engines.images.folder import build_folder
from fumehood.engines.output import FrameReader
from fumehood.engines.ownership import OWNER_PID

_KILLED = 137
"""Exit status of what SIGKILL ended: 128 + 9."""
_DRAIN_TIMEOUT_S = 10.0
"""For the output of a container that is gone."""
_WAIT_MIN_S = 0.05
"""A shorter wait would be over before the daemon could answer."""
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Of an image that sets none. Source: Docker's own default."""


class DockerEngine:
    """Boxes out of containers."""

    name = "docker"
    unenforced = ()

    def __init__(self, options: EngineOptions | None = None) -> None:
        self._options = options or EngineOptions()
        self._starting = BoundedSemaphore(self._options.starts_at_once)
        self._commands_found: set[tuple[str, str]] = set()

    @cached_property
    def _daemon(self) -> Daemon:
        return Daemon()

    @cached_property
    def _info(self) -> dict[str, Any]:
        return self._daemon.info()

    @property
    def isolation(self) -> Isolation:
        """A kernel of its own where the runtime is known to bring one; else a container."""
        try:
            return isolation_of(self._info, self._options.runtime)
        except (InfraError, InputError):
            return Isolation.CONTAINER

    def check(self) -> Readiness:
        """Ask the daemon who it is and whether it has the runtime."""
        try:
            trouble = runtime_trouble(self._info, self._options.runtime)
        except InputError as error:
            return Readiness(False, str(error))
        except InfraError as error:
            return Readiness(
                False, f"{error}; install and start one (Debian: apt-get install docker.io)"
            )
        return Readiness(False, trouble) if trouble else Readiness(True, self._describe())

    def own_kernels(self) -> tuple[str, ...]:
        """Return the registered runtimes that bring a kernel; none where no daemon answers."""
        try:
            return own_kernels(self._info)
        except (InfraError, InputError):
            return ()

    def _describe(self) -> str:
        runtime = self._options.runtime or self._info["DefaultRuntime"]
        seccomp = "" if has_seccomp(self._info) else ", but without seccomp"
        return (
            f"Docker {self._info['ServerVersion']} with {runtime}: {self.isolation.value}{seccomp}"
        )

    def prepare(self, source: AgentSource) -> Image:
        """Make sure of the image, building it where there is something to build.

        Raises:
            InputError: the agent or its image cannot be found or built, or its image names no command.
            InfraError: the daemon does not answer.
        """
        progress = self._options.progress or (lambda line: None)
        match source.kind:
            case AgentKind.IMAGE:
                return self._agent_image(source.name)
            case AgentKind.FOLDER:
                return self._agent_image(build_folder(Path(source.name), progress, self._daemon))
            case AgentKind.BUILTIN | AgentKind.MODULE:
                mounts = agent_mounts(source, for_nobody=True)
                return replace(
                    self._image(build_agent_python(progress, self._daemon)),
                    command=sdk_command(source),
                    mounts=mounts,
                    environment=ENVIRONMENT | ({"PYTHONPATH": AGENT_FOLDER} if mounts else {}),
                )

    def start(self, spec: BoxSpec) -> DockerBox:
        """Start one box, when fewer than ``starts_at_once`` others are starting.

        Raises:
            InputError: the image is not here, or has no such command.
            InfraError: the daemon cannot start it.
        """
        command = (*spec.image.command, *spec.arguments)
        if not command:
            raise InputError(f"the image {spec.image.reference!r} needs a command")
        config = container_config(self._daemon.client, spec, command, self._runtime())
        name = f"box-{secrets.token_hex(8)}"
        with self._starting:
            try:
                self._daemon.create(name, config)
                self._require_command(spec.image, command[0], name)
                output = self._run(name, spec.limits.output_bytes)
            except (InfraError, InputError):
                self._daemon.remove(name)
                raise
        return DockerBox(self._daemon, name, output)

    def reap(self, is_owned: OwnerCheck) -> int:
        """Remove the containers whose owner is gone."""
        lost = [
            one for one, labels in self._daemon.containers_with(OWNER_PID) if not is_owned(labels)
        ]
        for container in lost:
            self._daemon.remove(container)
        return len(lost)

    def close(self) -> None:
        """Close the connections to the daemon."""
        self._daemon.close()

    def _runtime(self) -> Runtime:
        own_kernel = self.isolation is Isolation.SANDBOXED_KERNEL
        return Runtime(self._options.runtime, own_kernel, has_seccomp(self._info))

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
        if not image.command:
            raise InputError(
                f"the image {reference!r} names nothing to run; give it a CMD or an ENTRYPOINT"
            )
        return image

    def _image(self, reference: str) -> Image:
        found = self._daemon.image(reference)
        if found is None:
            raise InputError(f"there is no image {reference!r} here; pull or build it first")
        config = found["Config"]
        command = (*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ()))
        return Image(
            reference, found["Id"], command, scratch=tuple(sorted(config.get("Volumes") or ()))
        )

    def _require_command(self, image: Image, command: str, container: str) -> None:
        """Look for the command, once per image: a missing one is the user's to mend, not an agent's end.

        The first process of a container is Docker's init, and what it says about a missing command could be
        said by any agent.
        """
        key = (image.digest or image.reference, command)
        if key in self._commands_found:
            return
        if not any(self._daemon.has_file(container, path) for path in self._places(image, command)):
            raise InputError(f"there is no command {command!r} in the image {image.reference!r}")
        self._commands_found.add(key)

    def _places(self, image: Image, command: str) -> list[str]:
        found = self._daemon.image(image.digest or image.reference) or {"Config": {}}
        if "/" in command:
            return [str(PurePosixPath("/", found["Config"].get("WorkingDir") or "", command))]
        inherited = dict(pair.split("=", 1) for pair in found["Config"].get("Env") or ())
        path = (inherited | image.environment).get("PATH", _DEFAULT_PATH)
        return [str(PurePosixPath(folder, command)) for folder in path.split(":") if folder]


class DockerBox:
    """A container."""

    def __init__(self, daemon: Daemon, name: str, output: FrameReader) -> None:
        self._daemon = daemon
        self._name = name
        self._output = output
        self._lock = Lock()
        self._was_killed = False
        self._exit: Exit | None = None
        self._closed: BoxOutput | None = None

    @property
    def name(self) -> str:
        """The container's name."""
        return self._name

    def host_pid(self) -> int | None:
        """Ask the daemon for the container's first process."""
        return None if self._closed else self._daemon.first_process(self._name)

    def wait(self, timeout_ms: int) -> Exit | None:
        """Wait until the agent's process ends, at most ``timeout_ms``."""
        if self._exit is None:
            code = self._daemon.wait(self._name, max(timeout_ms / 1000, _WAIT_MIN_S))
            if code is not None:
                self._exit = Exit(code, self._reason(code))
        return self._exit

    def kill(self) -> None:
        """Stop the container at once."""
        with self._lock:
            if self._closed is None and self._exit is None:
                self._was_killed = True
                self._daemon.kill(self._name)

    def close(self) -> BoxOutput:
        """Stop the container if need be, collect its output and remove it."""
        with self._lock:
            if self._closed is None:
                self._daemon.remove(self._name)
                self._closed = self._output.finish(_DRAIN_TIMEOUT_S)
            return self._closed

    def _reason(self, code: int) -> ExitReason:
        if code != _KILLED:
            return ExitReason.EXITED
        if self._was_killed:
            return ExitReason.KILLED
        if self._daemon.was_out_of_memory(self._name):
            return ExitReason.OUT_OF_MEMORY
        if self._daemon.was_killed(self._name):
            raise InfraError("somebody outside killed the container")
        return ExitReason.EXITED
