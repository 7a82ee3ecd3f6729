"""The interface of an engine, which starts untrusted agents in boxes.

The life of a box::

    engine.prepare(source) ──▶ image        once per agent and run; may build an image
    engine.start(spec)     ──▶ box          the agent's process runs
    box.wait(timeout_ms)   ──▶ Exit | None  None: still running after the timeout
    box.kill()                              any number of times, also after close; returns at once
    box.close()            ──▶ BoxOutput    always; removes the box from the host
    engine.close()                          after the last box is closed

Each box has a separate user; inside a user namespace it is :data:`BOX_UID`. Everything is read-only
except /tmp. The seat's sockets are in :data:`BOX_SOCKET_DIR`. There is no network. The environment
contains the variables of the image and :data:`ENVIRONMENT_NAMES`. If an engine cannot provide one
of these, :attr:`Engine.isolation`, :attr:`Engine.unenforced` and the engine's page state it.

An engine does not depend on episodes, tasks or scores. It gets a folder to mount in the
box and a command to run. It returns the output and the exit of a box. It raises ``InfraError`` only
for a failure of the infrastructure (a daemon that does not answer, a missing runtime).
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from fumehood.core.errors import InfraError

BOX_SOCKET_DIR = "/fumehood"
"""Folder inside a box with the sockets of its seat."""

AGENT_FOLDER = "/agent"
"""Folder inside a box with the module or package of an agent named ``module:Class``."""

BOX_UID = 65534
"""User and group inside a box with a user namespace: 65534, the overflow user; it owns no file."""

TIMERS_MAX = 4096
"""Timers and pending signals of a box (RLIMIT_SIGPENDING), of which the kernel keeps one number for
each user."""

ENVIRONMENT_NAMES = frozenset({"HOME", "HOSTNAME", "LANG", "LD_LIBRARY_PATH", "PATH", "PWD"})
"""Variables that a box may hold in addition to those of its image."""


class Isolation(Enum):
    """The isolation between the agent and the host, weakest first."""

    NONE = "none"
    """A process of the host, for trusted code."""
    INLINE = "none (built-in agent inside the service)"
    """A built-in agent that the service runs in memory."""
    NAMESPACES = "namespaces"
    """Linux namespaces; control groups only where the user may make them."""
    CONTAINER = "container"
    """A hardened container that shares the host's kernel."""
    SANDBOXED_KERNEL = "sandboxed_kernel"
    """A container whose system calls go to a separate kernel, such as gVisor."""

    @property
    def is_none(self) -> bool:
        """Whether nothing separates the agent from the host."""
        return self in (Isolation.NONE, Isolation.INLINE)


CPU_SHARES = 256
"""Weight of a box while the processors are busy, of the 1024 of a process of the host.

With the same weight, a box whose threads wait and wake up often delays processes of the host by up
to 400 ms (measured on Linux 6.18), among them those that serve other boxes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The resources that one box may use. Every bound is inclusive."""

    memory_bytes: int = 512 * 1024 * 1024
    """Memory and swap together."""
    cpus: float = 1.0
    """Processor time per wall time."""
    processes: int = 128
    """Processes and threads."""
    file_bytes: int = 16 * 1024 * 1024
    """Largest file."""
    tmp_bytes: int = 64 * 1024 * 1024
    """Size of /tmp, the only writable folder."""
    open_files: int = 1024
    """File descriptors of one process."""
    output_bytes: int = 1024 * 1024
    """Bytes kept of standard output and of standard error, each: the first half and the last half.
    The rest is read, counted and dropped."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A host folder or file shown read-only inside the box."""

    source: Path
    """Absolute path on the host."""
    target: str
    """Absolute path in the box."""


class AgentKind(Enum):
    """The ways to name an agent."""

    BUILTIN = "builtin"
    """A name of the SDK's built-in agents; trusted code."""
    MODULE = "module"
    """``module:Class`` in the current folder; untrusted."""
    FOLDER = "folder"
    """A folder with a Dockerfile; untrusted."""
    RECIPE = "recipe"
    """A name of :data:`~fumehood.engines.images.recipe.RECIPES`; untrusted."""
    IMAGE = "image"
    """An image that the engine already has, or the absolute path of an image archive; untrusted."""


IN_IMAGES = frozenset({AgentKind.FOLDER, AgentKind.RECIPE, AgentKind.IMAGE})
"""Kinds of agents that need an engine with images."""


@dataclass(frozen=True, slots=True)
class AgentSource:
    """An agent as the user named it."""

    kind: AgentKind
    name: str
    """Built-in name, ``module:Class``, absolute path of a folder or archive, name of a recipe, or
    image reference."""

    @property
    def is_archive(self) -> bool:
        """Whether it is an image archive or a folder with an OCI layout."""
        return self.kind is AgentKind.IMAGE and self.name.startswith("/")


@dataclass(frozen=True, slots=True)
class Image:
    """The file system and command that a box is started from."""

    reference: str
    """In the engine's notation; empty if the engine has no images."""
    digest: str
    """Content digest, for the run's record; empty if there is none."""
    command: tuple[str, ...]
    """Command to run inside."""
    mounts: tuple[Mount, ...] = ()
    """Agent code to show inside."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables set inside; they override those of the image."""
    scratch: tuple[str, ...] = ()
    """Folders that the image declares writable; each becomes a small tmpfs."""
    working_dir: str = ""
    """Folder in which the command starts; empty for that of the image."""
    users: bytes = b""
    """The image's /etc/passwd, to which an engine adds the user of a box; empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A box whose programs are root inside and may write everywhere, without network.

    Its limit ``tmp_bytes`` bounds what it writes on its root file system.
    """

    archive: bytes = b""
    """A tar that is unpacked at / before the start."""
    network_of: str = ""
    """Name of a running box whose network namespace this one shares; empty for a new namespace.
    Only a :class:`LiveWorkspaceEngine` shares one."""
    hosts: tuple[str, ...] = ()
    """Names that resolve to the box itself, for services that share its network namespace."""
    terminals: bool = False
    """Whether programs can open pseudo-terminals. No limit of the box includes the work of the
    kernel for them, unless the runtime brings a kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSpec:
    """One box to start."""

    image: Image
    socket_dir: Path
    """Host folder with the seat's sockets, shown inside as /fumehood."""
    arguments: tuple[str, ...] = ()
    """Appended to the image's command."""
    mounts: tuple[Mount, ...] = ()
    """Shown inside in addition to those of the image."""
    limits: Limits = field(default_factory=Limits)
    labels: dict[str, str] = field(default_factory=dict)
    """Attached to everything that the box leaves on the host, so that orphans can be attributed to
    their owner. Not visible inside."""
    workspace: Workspace | None = None
    """Makes the box a workspace; only a :class:`WorkspaceEngine` starts it."""


class ExitReason(Enum):
    """Why a box stopped."""

    EXITED = "exited"
    """The agent's process ended."""
    OUT_OF_MEMORY = "out_of_memory"
    """It was stopped at its memory limit."""
    KILLED = "killed"
    """:meth:`Box.kill` stopped it."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a box stopped."""

    code: int
    """Exit status; 128 + the signal's number if a signal ended the process."""
    reason: ExitReason


@dataclass(frozen=True, slots=True)
class BoxOutput:
    """The output of a box, each stream capped at ``Limits.output_bytes``."""

    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    """Written in total."""
    stderr_bytes: int


class Box(Protocol):
    """A started box. Safe to use from several threads."""

    @property
    def name(self) -> str:
        """The engine's name for the box, for logs and messages."""

    def host_pid(self) -> int | None:
        """Return the host's process ID of one process of the box, to measure it, or None."""

    def wait(self, timeout_ms: int) -> Exit | None:
        """Return how the agent's process ended, or None if it still runs after ``timeout_ms``.

        Raises:
            InfraError: the engine does not answer.
        """

    def kill(self, reason: ExitReason = ExitReason.KILLED) -> None:
        """Stop everything in the box at once; has no effect on a stopped or closed box.

        Args:
            reason: in the :class:`Exit` that :meth:`wait` then returns.
        """

    def close(self) -> BoxOutput:
        """Stop the box, remove everything it left on the host, and return its output, each time.

        Raises:
            InfraError: the box cannot be removed. A later run tries again.
        """


class KilledOutside(InfraError):
    """Another process of the host killed a box, through its engine."""


class NotEnded(InfraError):
    """A process of a killed box does not end."""


class NotBegun(InfraError):
    """A further program of a running box does not begin. A process of the box can cause this, by
    stopping the program before it begins."""


BEGIN_TIMEOUT_S = 30.0
"""Time in which a further program of a box must begin. Before it begins, the box cannot be paused,
so what the box writes is not measured exactly."""


INODE_BYTES = 1024
"""Counted for each file and folder of a workspace, because a file system has a limited number of
them."""


class FreeSpace(NamedTuple):
    """What is free on a disk."""

    size_bytes: int
    """Including what only root can use."""
    files: int
    """How many more files it can have; 0 if it has no such limit."""

    def used_since(self, before: FreeSpace) -> int:
        """Return how much less is free than before, with :data:`INODE_BYTES` for each file."""
        used_bytes = before.size_bytes - self.size_bytes
        return used_bytes + INODE_BYTES * (before.files - self.files)


class TooLarge(Exception):
    """What is to be read from a workspace exceeds its limit."""


@runtime_checkable
class WorkspaceBox(Box, Protocol):
    """A started workspace. It can be read from outside also after :meth:`Box.kill`."""

    def written_bytes(self, bytes_max: int | None = None) -> int:
        """Return the size of the files that differ from the image.

        Args:
            bytes_max: the engine may stop measuring beyond it, and return any larger size.

        Raises:
            TooLarge: there is too much to measure.
            InfraError: the engine does not answer.
        """

    def free_space(self) -> FreeSpace | None:
        """Return what is free on the disk to which the workspace writes; None if this process
        cannot read that."""

    def deleted(self) -> tuple[str, ...]:
        """Return the paths of the image that were deleted, sorted.

        Raises:
            TooLarge: there are too many changed paths to list.
            InfraError: the engine does not answer.
        """

    def changed(self) -> frozenset[str]:
        """Return the paths that were added or changed.

        Raises:
            TooLarge: there are too many to list.
            InfraError: the engine does not answer.
        """

    def copy_out(self, path: str, bytes_max: int) -> bytes | None:
        """Return a file or folder as a tar, which no program of the workspace writes; None if there
        is no such path.

        Raises:
            TooLarge: the tar has more than ``bytes_max`` bytes.
            InfraError: the engine does not answer.
        """


@runtime_checkable
class LiveWorkspaceBox(WorkspaceBox, Protocol):
    """A started workspace in which the engine can run commands. Every method raises ``InfraError``
    if the engine does not answer or the box has ended."""

    def pause(self) -> None:
        """Stop all programs until :meth:`resume`; has no effect on a paused box."""

    def resume(self) -> None:
        """Continue all programs; has no effect on a box that is not paused."""

    def unpack(self, archive: bytes) -> None:
        """Unpack a tar at /."""

    def execute(
        self, command: Sequence[str], environment: Mapping[str, str]
    ) -> Callable[[], int | None]:
        """Start a command as root, in the working folder of the box, beside the other programs.

        Args:
            command: with its arguments; its output is dropped.
            environment: variables in addition to those of the box.

        Returns:
            A function that returns its exit status, or None while it runs.

        Raises:
            NotBegun: the command does not begin in :data:`BEGIN_TIMEOUT_S`. The box was killed, if
                this user may signal its processes. Otherwise :meth:`Box.wait` returns as if it was
                killed, and its files cannot be read any more.
        """


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether an engine works on this machine."""

    ready: bool
    detail: str
    """One line: version and isolation if ready; otherwise what is missing and how to install it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """A user's options for an engine. An engine ignores options that do not concern it, except
    ``runtime``."""

    runtime: str | None = None
    """Name of a registered OCI runtime, such as ``runsc``; None means the engine's default.
    Rejected by :func:`~fumehood.engines.registry.choose_engine` if the engine has no runtimes."""
    forked_starts: bool = True
    """False starts a new process for each agent, also where the engine could fork a prepared
    one."""
    builtin_only: bool = False
    """True if every agent of the run comes with the SDK and calls no model."""
    archives: bool = False
    """True if an agent of the run is an image archive, which only the engine oci starts."""
    trust: bool = False
    """True allows any agent code on an engine without isolation."""
    progress: Callable[[str], None] | None = None
    """Receives a line when something takes long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationFacts:
    """What separates the boxes of an engine from the host, for the record of a run."""

    kernel: str
    """The kernel that answers the system calls of a box, with its version if it is known."""
    users: str
    """User IDs of boxes on the host: a number, ranges such as ``70000-70999``, or words."""
    network: str
    """``none``, or ``host`` if a box has the network of the host."""
    system_call_filter: str
    """SHA-256 of the system call filter in hex; empty if the engine installs no filter."""
    starts: str = "new"
    """``forked`` if processes of agents are forked from a prepared process, ``new`` otherwise."""


def host_kernel() -> str:
    """Return the name and the version of the host's kernel."""
    return f"{platform.system()} {platform.release()}"


class OrphanKind(Enum):
    """Kinds of resources that a killed command can leave behind."""

    CONTAINER = "container"
    PROCESSES = "processes"
    FOLDER = "folder"
    IMAGE = "image"


@dataclass(frozen=True, slots=True)
class Orphan:
    """A resource whose owner is gone."""

    kind: OrphanKind
    name: str
    """ID of a container, process ID of a session leader, path of a folder, reference of an
    image."""
    run: str
    """The run that it belonged to; empty for an image."""


class OwnerCheck(Protocol):
    """Returns whether the owner named by labels is alive."""

    def __call__(self, labels: dict[str, str], /) -> bool:
        """Return True if the owner is alive or cannot be judged from this machine."""


class BoxStarter(Protocol):
    """Starts boxes. Safe to use from several threads."""

    def start(self, spec: BoxSpec) -> Box:
        """Start one box; return when the agent's process runs or has already ended.

        Raises:
            InputError: the image has no such command.
            InfraError: the engine cannot start it.
        """
        ...


@dataclass(frozen=True, slots=True)
class WorkspaceImage:
    """The image of a workspace."""

    image: Image
    bases: Mapping[str, str]
    """Base images of its Dockerfile that were replaced by images built on this machine, which are
    the values."""


@runtime_checkable
class WorkspaceEngine(Protocol):
    """An engine that also starts workspaces."""

    def prepare_workspace(
        self, folder: Path, lines: Sequence[str] = (), working_dir: str = ""
    ) -> WorkspaceImage:
        """Build the image of a folder with a Dockerfile.

        Args:
            folder: with a Dockerfile at its top.
            lines: to add at the end of the Dockerfile.
            working_dir: replaces the WORKDIR of the image; empty for that one. Links on its path
                are resolved. A box makes a missing folder.

        Raises:
            InputError: the image cannot be built, or its working folder is one that the engine
                makes.
            InfraError: the engine does not answer.
        """

    def start(self, spec: BoxSpec) -> WorkspaceBox:
        """Start a box with :attr:`BoxSpec.workspace`; see :meth:`BoxStarter.start`."""


@runtime_checkable
class LiveWorkspaceEngine(WorkspaceEngine, Protocol):
    """An engine that runs commands, and agents, inside workspaces."""

    def prepare_service(self, folder: Path) -> WorkspaceImage:
        """Build the image of a service, with its command; see :meth:`prepare_workspace`."""

    def prepare_inside(self, source: AgentSource, workspace: Image) -> Image:
        """Build the image of an agent on top of the image of a workspace.

        Args:
            source: a folder whose Dockerfile starts from the argument FUMEHOOD_WORKSPACE.
            workspace: of the task.

        Raises:
            InputError: the image cannot be built, or has no command.
            InfraError: the engine does not answer.
        """

    def start(self, spec: BoxSpec) -> LiveWorkspaceBox:
        """Start a box with :attr:`BoxSpec.workspace`; see :meth:`BoxStarter.start`."""


class Engine(BoxStarter, Protocol):
    """A way to start boxes. Constructed from :class:`EngineOptions` without side effects.

    Safe to use from several threads.
    """

    @property
    def name(self) -> str:
        """The name in the registry of engines."""

    @property
    def isolation(self) -> Isolation:
        """The isolation of its boxes; never more than is known."""

    @property
    def unenforced(self) -> tuple[str, ...]:
        """Fields of :class:`Limits` that a box can exceed, or that hold only for each process."""

    @property
    def has_runtimes(self) -> bool:
        """Whether the engine honours ``EngineOptions.runtime``."""
        return False

    @property
    def has_forked_starts(self) -> bool:
        """Whether the engine honours ``EngineOptions.forked_starts``."""
        return False

    @property
    def workspace_problem(self) -> str:
        """Why a :class:`WorkspaceEngine` starts no workspaces for this user, with the remedy; empty
        if it does."""
        return ""

    def check(self) -> Readiness:
        """Return whether boxes can be started here; never raises."""

    def isolation_facts(self) -> IsolationFacts:
        """Return what separates its boxes from the host; never more than is known.

        Raises:
            InfraError: the engine does not answer.
        """

    def sandboxed_runtimes(self) -> tuple[str, ...]:
        """Return the names of the registered runtimes that bring their own kernel; never raises."""
        return ()

    def prepare(self, source: AgentSource) -> Image:
        """Make everything ready that boxes of this agent need.

        Raises:
            InputError: the agent cannot be found, built or trusted on this engine.
            InfraError: the engine does not answer.
        """

    def orphans(self, is_owned: OwnerCheck, *, images: bool = False) -> Iterable[Orphan]:
        """Return what earlier commands left behind; with ``images`` also images whose sources
        changed.

        Raises:
            InputError: the engine cannot be used here.
            InfraError: the engine does not answer.
        """

    def remove(self, orphan: Orphan) -> bool:
        """Remove an orphan; return False if it is an image in use, which is kept.

        Raises:
            InfraError: the engine does not answer.
        """

    def close(self) -> None:
        """Release threads and connections; every box must have been closed before."""
