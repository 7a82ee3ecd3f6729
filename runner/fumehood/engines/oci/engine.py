"""The oci engine: agents in containers of crun, runc or gVisor, without a daemon.

The file system of an image is unpacked once, and each box gets an overlay of it. The control group,
the user, the files and the filter of system calls of a box are those of the other engines. The
runtime is a child of this process and dies with it, and so does the box. The module ``rootless``
states what differs if an ordinary user starts boxes.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path, PurePosixPath
from subprocess import Popen
from typing import Any

from fumehood.core.errors import InfraError, InputError
from fumehood.core.user_ids import BOX_UIDS
from fumehood.engines.box_files import HeldByBox, give_sockets, users_with
from fumehood.engines.bubblewrap.cgroups import (
    HELPERS,
    KILLED,
    PREFIX,
    BoxGroup,
    exit_reason,
    hierarchies,
    remove_empty_groups,
    unenforced,
)
from fumehood.engines.docker.engine import DockerEngine
from fumehood.engines.docker.image_settings import is_reserved, require_startable, scratch_folders
from fumehood.engines.engine import (
    BOX_SOCKET_DIR,
    BOX_UID,
    AgentSource,
    BoxOutput,
    BoxSpec,
    Engine,
    EngineOptions,
    Exit,
    Image,
    Isolation,
    IsolationFacts,
    KilledOutside,
    Mount,
    Orphan,
    OrphanKind,
    OwnerCheck,
    Readiness,
    Workspace,
    WorkspaceImage,
    host_kernel,
)
from fumehood.engines.oci import rootless
from fumehood.engines.oci.archive import ImageArchive
from fumehood.engines.oci.box import OciBox
from fumehood.engines.oci.box_root import BoxRoot, BoxRoots, new_root
from fumehood.engines.oci.bundle import ARCHITECTURES, bundle_config
from fumehood.engines.oci.roots import Root, Roots
from fumehood.engines.oci.runtimes import RUNTIMES, Runtime
from fumehood.engines.oci.workspace_files import WorkspaceFiles, prepare, remove_written
from fumehood.engines.ownership import owner_labels
from fumehood.engines.platforms import platform_problem
from fumehood.engines.records import FolderRecords
from fumehood.engines.seccomp import docker_profile
from fumehood.engines.shared_inodes import hold_shared_devices, hold_shared_inodes
from fumehood.engines.state_folder import disk_folder
from fumehood.engines.subprocess_box import ChildBox, ChildBoxEngine, Command, die_with_parent
from fumehood.engines.user_quotas import raise_user_quotas

_INIT_PROGRAMS = ("docker-init", "tini-static")
"""Names of tini, a static program that forwards signals and exit statuses."""
_USERS = "/etc/passwd"
_USERS_BYTES_MAX = 64 * 1024
_HOME_FIELD = 5
"""Source: passwd(5)."""
_UPPER_BYTES = 16 << 20
"""Of the files that a runtime makes in a root, such as targets of mounts."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ALWAYS_SET = {"PATH": _PATH, "HOME": "/tmp", "HOSTNAME": "localhost"}
"""Variables that docker sets too, where the image does not."""
_START_TIMEOUT_S = 60.0
_POLL_MS = 3
_CHECK_TIMEOUT_MS = 20_000


class OciEngine(ChildBoxEngine, Engine):
    """Starts boxes with an OCI runtime."""

    name = "oci"
    has_runtimes = True
    has_live_workspaces = True

    def __init__(self, options: EngineOptions | None = None) -> None:
        super().__init__()
        self._options = options or EngineOptions()
        self._docker = DockerEngine(replace(self._options, runtime=None))
        self._images = Roots()
        self._roots = BoxRoots()
        self._is_rootless = os.geteuid() != 0
        self._ids = rootless.subordinate_ids() if self._is_rootless else None
        self._known_commands: set[tuple[str, str]] = set()
        self._workspaces: dict[str, tuple[OciBox, tuple[str, ...]]] = {}
        """The running workspaces by name, with the names that resolve to them."""

    @property
    def _runtime(self) -> Runtime:
        name = self._options.runtime or next(iter(RUNTIMES))
        if name not in RUNTIMES:
            raise InputError(
                f"the engine oci has no runtime {name!r}: use one of {', '.join(RUNTIMES)}"
            )
        return RUNTIMES[name]

    @property
    def isolation(self) -> Isolation:
        """``SANDBOXED_KERNEL`` with gVisor, ``NAMESPACES`` without control groups, otherwise
        ``CONTAINER``."""
        if RUNTIMES.get(self._options.runtime or "", RUNTIMES["crun"]).own_kernel:
            return Isolation.SANDBOXED_KERNEL
        return Isolation.NAMESPACES if self.unenforced else Isolation.CONTAINER

    @property
    def unenforced(self) -> tuple[str, ...]:
        """The limits that need control groups, if this process cannot make any."""
        return unenforced()

    @property
    def workspace_problem(self) -> str:
        """Why an ordinary user cannot start workspaces; empty for root."""
        if not self._is_rootless:
            return ""
        return (
            "the engine oci starts workspaces only for root: run fumehood as root, or use --engine "
            "docker"
        )

    @cached_property
    def _init_program(self) -> Path | None:
        path = next(filter(None, map(shutil.which, _INIT_PROGRAMS)), None)
        return None if path is None else Path(path)

    def check(self) -> Readiness:
        """Start a box that does nothing, and report whether it works."""
        try:
            problem = self._problem()
            if problem:
                return Readiness(False, problem)
            box_exit, output = self._trial()
        except (InfraError, InputError) as error:
            return Readiness(False, str(error))
        if box_exit is None or box_exit.code != 0:
            return Readiness(False, f"{self._runtime.name} does not work here: {output.stderr!r}")
        docker = self._docker.check()
        images = "images of docker" if docker.ready else "image archives only, as no docker answers"
        facts = [self.isolation.value, *self._missing(), images]
        return Readiness(True, f"{self._runtime.version()}: {'; '.join(facts)}")

    def _missing(self) -> Iterable[str]:
        """Yield what boxes of an ordinary user lack on this machine."""
        if self.unenforced:
            yield "memory is limited for each process, processor time is not"
        if self._is_rootless and self._ids is None:
            yield (
                "all boxes have your user, because /etc/subuid and /etc/subgid grant you none, or "
                "newuidmap is missing (Debian: apt-get install uidmap)"
            )

    def isolation_facts(self) -> IsolationFacts:
        """Return the facts of the runtime, with the digest of the seccomp profile."""
        runtime = self._runtime
        kernel = host_kernel()
        return IsolationFacts(
            kernel=f"that of the runtime {runtime.name}, on {kernel}"
            if runtime.own_kernel
            else kernel,
            users=self._users(),
            network="none",
            system_call_filter=(
                "" if runtime.own_kernel else sha256(docker_profile().encode()).hexdigest()
            ),
        )

    def _users(self) -> str:
        if self._is_rootless and self._ids is None:
            return str(os.geteuid())
        return rootless.ranges_text(BOX_UIDS if self._ids is None else self._ids.users)

    def sandboxed_runtimes(self) -> tuple[str, ...]:
        """Return the installed runtimes that bring their own kernel."""
        return tuple(
            name
            for name, runtime in RUNTIMES.items()
            if runtime.own_kernel and not runtime.problem()
        )

    def prepare(self, source: AgentSource) -> Image:
        """Return the agent's image, unpacked.

        An image is an archive if its name is a path of one; otherwise docker has it or builds it.

        Raises:
            InputError: the agent or its image cannot be found, built or unpacked, or docker is not
                ready.
            InfraError: the daemon does not answer any more.
        """
        if source.is_archive:
            return self._of_archive(Path(source.name))
        self._require_docker(f"the image of the agent {source.name}, which is no image archive")
        image = self._docker.prepare(source)
        root = self._unpacked(image)
        return replace(
            image,
            environment=_variables(root) | image.environment,
            scratch=_scratch(root, image.scratch, image.reference),
        )

    def prepare_workspace(
        self, folder: Path, lines: Sequence[str] = (), working_dir: str = ""
    ) -> WorkspaceImage:
        """Return the image of a folder with a Dockerfile, which docker builds, unpacked; see
        :class:`~fumehood.engines.engine.WorkspaceEngine`."""
        self._require_workspaces()
        self._require_docker("the images of workspaces")
        workspace = self._docker.prepare_workspace(folder, lines, working_dir)
        self._unpacked(workspace.image)
        return workspace

    def _require_docker(self, what: str) -> None:
        docker = self._docker.check()
        if not docker.ready:
            raise InputError(
                f"the engine oci needs docker for {what}, but starts nothing with it: "
                f"{docker.detail}"
            )

    def prepare_service(self, folder: Path) -> WorkspaceImage:
        """Return the image of a service with its command, which docker builds, unpacked; see
        :class:`~fumehood.engines.engine.LiveWorkspaceEngine`."""
        service = self._docker.prepare_service(folder)
        self._unpacked(service.image)
        return service

    def prepare_inside(self, source: AgentSource, workspace: Image) -> Image:
        """Return the image of an agent on top of the image of a workspace, which docker builds,
        unpacked; see :class:`~fumehood.engines.engine.LiveWorkspaceEngine`."""
        image = self._docker.prepare_inside(source, workspace)
        self._unpacked(image)
        return image

    def start(self, spec: BoxSpec) -> OciBox:
        """Start one box, when fewer are starting than this machine can start at once.

        Raises:
            InputError: the image was not prepared, or has no such command.
            InfraError: the runtime cannot start it.
        """
        if spec.workspace is not None:
            self._require_workspaces()
        command = (*spec.image.command, *spec.arguments)
        root = self._images.get(spec.image.digest)
        if root is None:
            raise InputError(f"the image {spec.image.reference!r} is not unpacked here")
        held = self._held(spec.labels)
        try:
            copies = held.files.copies((*spec.image.mounts, *spec.mounts))
            shown = (Mount(spec.socket_dir, BOX_SOCKET_DIR), *copies)
            self._require_command(root, spec.image, command, shown)
            if spec.workspace is not None and not self._runtime.own_kernel:
                raise_user_quotas(self._options.progress)
            elif spec.workspace is None and not self._is_rootless:
                give_sockets(spec.socket_dir, held.user())
            if spec.image.users:
                users = held.files.write(users_with(spec.image.users, self._user(held)))
                shown = (*shown, Mount(users, _USERS))
            with self._starting:
                box = self._start(root, spec, command, shown, held)
        except (InfraError, InputError):
            held.release()
            raise
        if not self._runtime.own_kernel:
            self._queues.add(box)
        return box

    def orphans(self, is_owned: OwnerCheck, *, images: bool = False) -> Iterable[Orphan]:
        """Return the boxes whose owner is gone, and with ``images`` the unpacked images whose
        source is gone or has changed."""
        boxes = self._records.orphans(is_owned)
        stale = self._images.stale(self._is_current) if images else []
        return [*boxes, *(Orphan(OrphanKind.IMAGE, str(folder), "") for folder in stale)]

    def remove(self, orphan: Orphan) -> bool:
        """Kill an orphaned box, or remove an unpacked image; return False if it is in use."""
        if orphan.kind is OrphanKind.IMAGE:
            return self._images.remove(Path(orphan.name))
        return super().remove(orphan)

    def close(self) -> None:
        """End the thread that starts boxes, and all boxes that still run."""
        super().close()
        self._docker.close()
        self._images.close()

    def _problem(self) -> str:
        if problem := platform_problem():
            return problem
        if platform.machine() not in ARCHITECTURES:
            return f"the oci engine runs on {' and '.join(ARCHITECTURES)}, not {platform.machine()}"
        if not self._is_rootless and hierarchies() is None:
            return "no control groups can be made here, with memory, cpu and pids; use bubblewrap"
        if self._is_rootless and not self._runtime.is_rootless:
            usable = ", ".join(runtime.name for runtime in RUNTIMES.values() if runtime.is_rootless)
            return (
                f"an ordinary user cannot use the runtime {self._runtime.name}: use {usable}, or "
                "run fumehood as root"
            )
        if self._init_program is None:
            return "tini-static is missing; install it (Debian: apt-get install tini)"
        return self._runtime.problem()

    def _require_command(
        self, root: Root, image: Image, command: Sequence[str], shown: Iterable[Mount]
    ) -> None:
        """Check once per image that the command exists, because the init program reports a missing
        one only in the output.

        Raises:
            InputError: it does not exist.
        """
        if not command:
            raise InputError(
                f"the image {image.reference!r} has no command: add CMD or ENTRYPOINT to it"
            )
        if (key := (image.digest, command[0])) not in self._known_commands:
            if not _has_command(root, image, command[0], shown):
                raise InputError(f"the image {image.reference!r} has no command {command[0]!r}")
            self._known_commands.add(key)

    def _held(self, labels: Mapping[str, str]) -> HeldByBox:
        return rootless.held_by_box(labels, self._ids) if self._is_rootless else HeldByBox(labels)

    def _user(self, held: HeldByBox) -> int:
        """Return the user inside a box."""
        return BOX_UID if self._is_rootless else held.user()

    def _require_workspaces(self) -> None:
        if problem := self.workspace_problem:
            raise InputError(problem)

    def _require_startable(self, image: Image) -> None:
        """Start a box of an archive's image once, because its settings can keep it from starting.

        Raises:
            InputError: it does not start.
        """
        try:
            self._trial(image)
        except InfraError as error:
            raise InputError(
                f"the image {image.reference!r} cannot start; correct its settings, such as VOLUME "
                f"and WORKDIR: {error}"
            ) from error

    def _trial(self, image: Image | None = None) -> tuple[Exit | None, BoxOutput]:
        """Start a box of an image, or an empty one, with the init program as its command."""
        held = self._held(owner_labels("trial"))
        root = None if image is None else self._images.get(image.digest)
        try:
            spec = BoxSpec(image=image or Image("", "", ()), socket_dir=held.files.folder())
            box = self._start(root, spec, ("/.init", "--version"), (), held)
        except (InfraError, InputError):
            held.release()
            raise
        try:
            return box.wait(_CHECK_TIMEOUT_MS), box.close()
        finally:
            box.close()

    def _start(
        self,
        image: Root | None,
        spec: BoxSpec,
        command: Sequence[str],
        shown: Sequence[Mount],
        held: HeldByBox,
    ) -> OciBox:
        workspace, runtime, user = spec.workspace, self._runtime, self._user(held)
        if (init := self._init_program) is None:
            raise InfraError(self._problem())
        self._hold_shared()
        group = self._group(held, spec, runtime)
        place = None if image is None else image.folder
        root = new_root() if self._is_rootless else self._root(place, init, held, workspace)
        files, own = None, dict[str, str]()
        if workspace is not None and image is not None:
            own = {"HOME": _home(image)} | _variables(image)
            files = self._files(root, image, spec, workspace, held)
            if group is not None:
                # Nothing removes files while a process makes others.
                held.on_release(group.require_removed)
        config = bundle_config(
            root,
            command,
            user=user,
            environment=_ALWAYS_SET | own | spec.image.environment,
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
        if self._is_rootless:
            config = rootless.adapted(config, spec.limits, self._ids, has_group=bool(group))
        bundle = _bundle(held, config)
        pid_file = bundle / "pid"
        entrances = [] if runtime.makes_groups or group is None else group.entrances()

        def execute(words: Sequence[str], added: Mapping[str, str]) -> Popen[bytes]:
            variables = config["process"]["env"] + [f"{key}={added[key]}" for key in added]
            process = config["process"] | {"args": list(words), "env": variables}
            file = held.files.write(json.dumps(process).encode())
            line = _entering(entrances, runtime.execution(root, file), root.null)
            return self._starter.start(Command(arguments=line, environment={}, stdin=root.null))

        line = runtime.command(root, bundle, pid_file, is_workspace=workspace is not None)
        child = self._starter.start(self._command(held, root, place, entrances, line))
        record = self._records.write(child.pid, held.labels, root.mark)
        held.on_release(lambda: record.unlink(missing_ok=True))
        box = OciBox(
            pid_file,
            group,
            files,
            execute,
            child,
            spec.limits.output_bytes,
            read_code=lambda code: _exit_status(code, group),
            read_reason=lambda code: exit_reason(code, group),
            on_close=held.release,
        )
        _wait_for_start(box, pid_file, runtime)
        if workspace is not None:
            self._workspaces[box.name] = box, self._hosts(workspace)
            held.on_release(lambda: self._workspaces.pop(box.name, None))
        return box

    def _hold_shared(self) -> None:
        hold_shared_inodes()
        if self._is_rootless:
            hold_shared_devices()

    def _command(
        self,
        held: HeldByBox,
        root: BoxRoot,
        place: Path | None,
        entrances: Iterable[Path],
        line: Sequence[str],
    ) -> Command:
        """Return the command that enters the control group of a box and becomes its runtime."""
        init = self._init_program
        if not self._is_rootless or init is None:
            line = _entering(entrances, line)
            return Command(arguments=line, environment={}, stdin=root.null)
        line, environment = rootless.start_command(
            held, root, place, init, _UPPER_BYTES, self._ids, line
        )
        return Command(arguments=_entering(entrances, line), environment=environment)

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

    def _group(self, held: HeldByBox, spec: BoxSpec, runtime: Runtime) -> BoxGroup | None:
        """Make the control group of a box; None for an ordinary user who may not."""
        writable_hierarchies = hierarchies()
        if writable_hierarchies is None and self._is_rootless:
            return None
        if writable_hierarchies is None:
            raise InfraError(self._problem())
        can_pause = spec.workspace is not None
        group = BoxGroup(writable_hierarchies, held.user(), can_pause=can_pause)
        processes = spec.limits.processes + runtime.tasks - HELPERS
        group.make(replace(spec.limits, processes=processes))
        if runtime.makes_groups:
            held.on_release(lambda: remove_empty_groups(held.user()))
        held.on_release(group.require_removed)
        return group

    def _root(
        self, place: Path | None, init: Path, held: HeldByBox, workspace: Workspace | None
    ) -> BoxRoot:
        disk = None if workspace is None else _disk(held)
        root = new_root(disk)
        try:
            self._starter.call(lambda: self._roots.make(root, place, init, _UPPER_BYTES))
        except OSError as error:
            where = f", with changes in {disk}" if disk else ""
            raise InfraError(f"cannot mount the root of a box{where}: {error.strerror}") from error
        held.on_release(lambda: self._starter.call(lambda: self._roots.drop(root)))
        return root

    def _files(
        self, root: BoxRoot, image: Root, spec: BoxSpec, workspace: Workspace, held: HeldByBox
    ) -> WorkspaceFiles:
        """Return the files of a workspace, and make those with which it starts."""
        flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
        handle = self._starter.call(lambda: os.open(root.merged, flags))
        held.on_release(lambda: os.close(handle))
        seen = Root(Path(f"/proc/self/fd/{handle}"))
        prepare(seen, spec.image.working_dir, workspace.archive, self._hosts(workspace))
        return WorkspaceFiles(root, seen, image)

    def _unpacked(self, image: Image) -> Root:
        return self._images.get(image.digest) or self._images.unpacked(
            image.digest, image.reference, lambda folder: self._exported(image, folder)
        )

    def _exported(self, image: Image, folder: Path) -> ImageArchive:
        if self._options.progress:
            self._options.progress(f"unpacking the image {image.reference}")
        archive = folder / "image.tar"
        self._docker.export(image, archive)
        return ImageArchive(archive)

    def _of_archive(self, path: Path) -> Image:
        with ImageArchive(path) as archive:
            digest = archive.digest
            root = self._images.get(digest) or self._images.unpacked(
                digest, str(path), lambda _: ImageArchive(path)
            )
        command = (*(root.config.get("Entrypoint") or ()), *(root.config.get("Cmd") or ()))
        require_startable(str(path), command)
        try:
            image = Image(
                str(path),
                digest,
                command,
                environment=_variables(root),
                scratch=_scratch(root, root.config.get("Volumes") or (), str(path)),
                working_dir=_working_dir(root, str(path)),
                users=root.read(_USERS, _USERS_BYTES_MAX),
            )
        except OSError as error:
            raise InputError(
                f"the image {str(path)!r} cannot start; correct the paths of its VOLUME and "
                f"WORKDIR: {error.strerror}"
            ) from error
        self._require_startable(image)
        return image

    def _is_current(self, digest: str, source: str) -> bool:
        """Return whether an unpacked image is still what its source has."""
        if source.startswith("/"):
            try:
                with ImageArchive(Path(source)) as archive:
                    return archive.digest == digest
            except InputError:
                return False
        return self._docker.digest_of(source) == digest


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


def _home(root: Root) -> str:
    """Return the home folder of root in an image."""
    for line in root.read(_USERS, _USERS_BYTES_MAX).decode("utf-8", "replace").splitlines():
        fields = line.split(":")
        if fields[2:3] == ["0"] and len(fields) > _HOME_FIELD:
            return fields[_HOME_FIELD] or "/"
    return "/"


def _variables(root: Root) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in root.config.get("Env") or () if "=" in pair)


def _scratch(root: Root, volumes: Iterable[str], reference: str) -> tuple[str, ...]:
    """Return the places of volumes, which links of the image must not lead into other mounts."""
    places = {volume: root.place(volume) for volume in scratch_folders(reference, volumes)}
    for volume, place in places.items():
        if place is None:
            raise InputError(
                f"the image {reference!r} cannot start: VOLUME {volume!r} is a loop of links"
            )
    return scratch_folders(reference, filter(None, places.values()))


def _working_dir(root: Root, reference: str) -> str:
    setting = root.config.get("WorkingDir") or "/"
    path = root.resolved(setting)
    if path is None or is_reserved(path) or not (root.folder / path.lstrip("/")).is_dir():
        raise InputError(
            f"the image {reference!r} cannot start: WORKDIR {setting!r} is no folder of the image"
        )
    return path


def _has_command(root: Root, image: Image, name: str, shown: Iterable[Mount]) -> bool:
    path = (_ALWAYS_SET | image.environment)["PATH"]
    folders = [image.working_dir or "/"] if "/" in name else path.split(":")
    paths = [PurePosixPath("/", folder, name) for folder in folders if folder]
    return any(
        root.is_program(str(path)) or any(path.is_relative_to(mount.target) for mount in shown)
        for path in paths
    )


def _entering(
    entrances: Iterable[Path], line: Sequence[str], output: Path | None = None
) -> list[str]:
    """Return a command that enters control groups before it becomes another one, which writes to a
    file if ``output`` is one, and which the kernel kills with this process."""
    enter = "".join(f"echo 0 > {file} && " for file in entrances)
    redirect = f" > {output} 2>&1" if output else ""
    return ["/bin/sh", "-c", f'{enter}exec "$@"{redirect}', "sh", *die_with_parent(), *line]


def _wait_for_start(box: ChildBox, pid_file: Path, runtime: Runtime) -> None:
    """Wait until the container runs.

    Raises:
        InfraError: the runtime did not start it.
    """
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not pid_file.exists():
        if box.wait(_POLL_MS) is not None and not pid_file.exists():
            reason = box.close().stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise InfraError(f"{runtime.name} could not start a box: {reason or 'no message'}")
        if time.monotonic() > deadline:
            box.close()
            raise InfraError(f"{runtime.name} did not start a box in {_START_TIMEOUT_S:.0f} s")


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
