"""The oci engine: agents in containers of crun, runc or gVisor, without a daemon.

The file system of an image is unpacked once, and each box gets an overlay of it. The control group,
the user, the files and the filter of system calls of a box are those of the other engines. The
runtime is a child of this process and dies with it, and so does the box. The module ``users``
states what differs if an ordinary user starts boxes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path, PurePosixPath

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.box_files import HeldByBox, users_with
from fumehood.engines.bubblewrap.cgroups import unenforced
from fumehood.engines.docker.engine import DockerEngine
from fumehood.engines.docker.image_settings import is_reserved, require_startable, scratch_folders
from fumehood.engines.engine import (
    BOX_SOCKET_DIR,
    AgentSource,
    BoxOutput,
    BoxSpec,
    Engine,
    EngineOptions,
    Exit,
    Image,
    Isolation,
    IsolationFacts,
    Mount,
    Orphan,
    OrphanKind,
    OwnerCheck,
    Readiness,
    WorkspaceImage,
    host_kernel,
)
from fumehood.engines.oci.archive import ImageArchive
from fumehood.engines.oci.box import OciBox
from fumehood.engines.oci.containers import ALWAYS_SET, Containers
from fumehood.engines.oci.rootless import ranges_text
from fumehood.engines.oci.roots import USERS, Root, Roots
from fumehood.engines.oci.runtimes import RUNTIMES
from fumehood.engines.oci.users import starting_user
from fumehood.engines.ownership import owner_labels
from fumehood.engines.seccomp import docker_profile
from fumehood.engines.subprocess_box import ChildBoxEngine
from fumehood.engines.user_quotas import raise_user_quotas

_CHECK_TIMEOUT_MS = 20_000


class OciEngine(ChildBoxEngine, Engine):
    """Starts boxes with an OCI runtime."""

    name = "oci"
    has_runtimes = True

    def __init__(self, options: EngineOptions | None = None) -> None:
        super().__init__()
        self._options = options or EngineOptions()
        self._docker = DockerEngine(replace(self._options, runtime=None))
        self._images = Roots()
        self._user = starting_user(self._starter)
        self._containers = Containers(
            self._options.runtime, self._user, self._starter, self._records
        )
        self._known_commands: set[tuple[str, str]] = set()

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
        return self._user.workspace_problem

    def check(self) -> Readiness:
        """Start a box that does nothing, and report whether it works."""
        try:
            problem = self._containers.problem()
            if problem:
                return Readiness(False, problem)
            box_exit, output = self._trial()
        except (InfraError, InputError) as error:
            return Readiness(False, str(error))
        if box_exit is None or box_exit.code != 0:
            name = self._containers.runtime.name
            return Readiness(False, f"{name} does not work here: {output.stderr!r}")
        docker = self._docker.check()
        images = "images of docker" if docker.ready else "image archives only, as no docker answers"
        process_only = "memory is limited for each process, processor time is not"
        missing = [process_only if self.unenforced else "", self._user.missing]
        facts = [self.isolation.value, *filter(None, missing), images]
        return Readiness(True, f"{self._containers.runtime.version()}: {'; '.join(facts)}")

    def isolation_facts(self) -> IsolationFacts:
        """Return the facts of the runtime, with the digest of the seccomp profile."""
        runtime = self._containers.runtime
        kernel, users = host_kernel(), self._user.users
        return IsolationFacts(
            kernel=f"that of the runtime {runtime.name}, on {kernel}"
            if runtime.own_kernel
            else kernel,
            users=ranges_text(users),
            network="none",
            system_call_filter=(
                "" if runtime.own_kernel else sha256(docker_profile().encode()).hexdigest()
            ),
        )

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
            environment=root.variables | image.environment,
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
        held = HeldByBox(spec.labels, self._user.reserved)
        try:
            copies = held.files.copies((*spec.image.mounts, *spec.mounts))
            shown = (Mount(spec.socket_dir, BOX_SOCKET_DIR), *copies)
            self._require_command(root, spec.image, command, shown)
            if spec.workspace is None:
                self._user.give_sockets(spec.socket_dir, held)
            elif not self._containers.runtime.own_kernel:
                raise_user_quotas(self._options.progress)
            if spec.image.users:
                users = held.files.write(
                    users_with(spec.image.users, self._user.inside or held.user())
                )
                shown = (*shown, Mount(users, USERS))
            with self._starting:
                box = self._containers.start(spec, root, command, shown, held)
        except (InfraError, InputError):
            held.release()
            raise
        if not self._containers.runtime.own_kernel:
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
        held = HeldByBox(owner_labels("trial"), self._user.reserved)
        root = None if image is None else self._images.get(image.digest)
        try:
            spec = BoxSpec(image=image or Image("", "", ()), socket_dir=held.files.folder())
            box = self._containers.start(spec, root, ("/.init", "--version"), (), held)
        except (InfraError, InputError):
            held.release()
            raise
        try:
            return box.wait(_CHECK_TIMEOUT_MS), box.close()
        finally:
            box.close()

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
                environment=root.variables,
                scratch=_scratch(root, root.config.get("Volumes") or (), str(path)),
                working_dir=_working_dir(root, str(path)),
                users=root.users,
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
    path = (ALWAYS_SET | image.environment)["PATH"]
    folders = [image.working_dir or "/"] if "/" in name else path.split(":")
    paths = [PurePosixPath("/", folder, name) for folder in folders if folder]
    return any(
        root.is_program(str(path)) or any(path.is_relative_to(mount.target) for mount in shown)
        for path in paths
    )
