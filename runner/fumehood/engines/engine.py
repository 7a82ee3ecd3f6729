"""What puts an untrusted agent in a box.

The life of a box::

    engine.prepare(source) ──▶ image        once per agent and run; may build; may say no (InputError)
    engine.start(spec)     ──▶ box          the agent's process runs
    box.wait(timeout_ms)   ──▶ Exit | None  None: still running when the time was over
    box.kill()                              as often as one likes, also after close; returns at once
    box.close()            ──▶ BoxOutput    always: nothing of the box is left on the host
    engine.close()                          when the last box is closed

What a box looks like from inside: the user is :data:`BOX_UID`; everything is read-only but /tmp; the seat's
sockets are in :data:`BOX_SOCKET_DIR`; there is no network; the environment holds what the image sets and nothing
beyond :data:`ENVIRONMENT_NAMES`. Where an engine cannot give one of these, its page in the documentation,
its :attr:`Engine.isolation` and its :attr:`Engine.unenforced` say so.

An engine knows nothing about episodes, tasks, sockets or scores: it is given a folder to show inside and a
command to run. What a box prints, how it exits and whether it can be started is data; only the failure of
the machinery itself (a daemon that does not answer, a missing runtime) is an ``InfraError``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol

BOX_SOCKET_DIR = "/fumehood"
"""Where a box finds its seat's sockets."""

AGENT_FOLDER = "/agent"
"""Where a box finds the module or package of an agent that was named as ``module:Class``."""

BOX_UID = 65534
"""User and group inside: "nobody" everywhere, owner of nothing."""

ENVIRONMENT_NAMES = frozenset({"HOME", "HOSTNAME", "LANG", "LD_LIBRARY_PATH", "PATH", "PWD"})
"""Variables that a box may hold besides those of its image."""


class Isolation(Enum):
    """What stands between the agent and the host, weakest first."""

    NONE = "none"
    """A process of the host: for code that is trusted."""
    INLINE = "none (built-in agent inside the service)"
    """A built-in agent that the service plays in memory."""
    NAMESPACES = "namespaces"
    """Linux namespaces without resource control groups."""
    CONTAINER = "container"
    """A hardened container sharing the host's kernel."""
    SANDBOXED_KERNEL = "sandboxed_kernel"
    """A container whose system calls meet a kernel of its own."""

    @property
    def is_none(self) -> bool:
        """Whether nothing separates the agent from the host."""
        return self in (Isolation.NONE, Isolation.INLINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one box may use. Every bound is inclusive."""

    memory_bytes: int = 512 * 1024 * 1024
    """Memory and swap together."""
    cpus: float = 1.0
    """Processor time per wall time."""
    processes: int = 128
    """Processes and threads."""
    file_bytes: int = 16 * 1024 * 1024
    """Largest file."""
    tmp_bytes: int = 64 * 1024 * 1024
    """Size of the only writable place, /tmp."""
    open_files: int = 1024
    """File descriptors of one process."""
    output_bytes: int = 1024 * 1024
    """Kept of standard output and of standard error, each: the first half and the last half of it. What lies
    between is read, counted and dropped."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A host folder or file shown read-only inside the box."""

    source: Path
    """On the host, absolute."""
    target: str
    """Inside, absolute."""


class AgentKind(Enum):
    """The ways to say what an agent is."""

    BUILTIN = "builtin"
    """A name of the SDK's own agents; trusted code."""
    MODULE = "module"
    """``module:Class``, found from the folder where the command is run; untrusted."""
    FOLDER = "folder"
    """A folder with a Dockerfile; untrusted."""
    IMAGE = "image"
    """An image the engine knows already; untrusted."""


@dataclass(frozen=True, slots=True)
class AgentSource:
    """An agent as the user named it."""

    kind: AgentKind
    name: str
    """Built-in name, ``module:Class``, absolute folder path, or image reference."""


@dataclass(frozen=True, slots=True)
class Image:
    """What a box is started from, ready to use."""

    reference: str
    """In the engine's own terms; empty where the engine needs none."""
    digest: str
    """Content digest, for the record; empty where there is none."""
    command: tuple[str, ...]
    """What to run inside."""
    mounts: tuple[Mount, ...] = ()
    """Agent code to show inside."""
    environment: dict[str, str] = field(default_factory=dict)
    """Set inside, over what the image itself sets."""
    scratch: tuple[str, ...] = ()
    """Folders that the image declares writable; each becomes a small place in memory of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSpec:
    """One box to start."""

    image: Image
    socket_dir: Path
    """Host folder with the seat's sockets, shown inside as /fumehood."""
    arguments: tuple[str, ...] = ()
    """Appended to the image's command."""
    mounts: tuple[Mount, ...] = ()
    """Shown inside besides the image's own."""
    limits: Limits = field(default_factory=Limits)
    labels: dict[str, str] = field(default_factory=dict)
    """Put on whatever the box leaves on the host, so that an orphan tells its owner. Never visible inside."""


class ExitReason(Enum):
    """Why a box stopped."""

    EXITED = "exited"
    """The agent's process ended by itself."""
    OUT_OF_MEMORY = "out_of_memory"
    """The kernel stopped it at its memory limit."""
    KILLED = "killed"
    """:meth:`Box.kill` stopped it."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a box stopped."""

    code: int
    """Exit status; 128 + the signal's number where a signal ended it."""
    reason: ExitReason


@dataclass(frozen=True, slots=True)
class BoxOutput:
    """What a box printed, capped at ``Limits.output_bytes`` each."""

    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    """Printed in all."""
    stderr_bytes: int


class Box(Protocol):
    """A started box. Safe to use from several threads."""

    @property
    def name(self) -> str:
        """What the engine calls it, for logs and messages."""
        ...

    def host_pid(self) -> int | None:
        """Return the host's number of one process of the box, for measuring; None when there is none."""

    def wait(self, timeout_ms: int) -> Exit | None:
        """Wait until the agent's process ends, at most ``timeout_ms``.

        Returns:
            How it ended, or None when it is still running.

        Raises:
            InfraError: the engine does not answer.
        """
        ...

    def kill(self) -> None:
        """Stop everything in the box at once; does nothing when it has stopped or is closed."""

    def close(self) -> BoxOutput:
        """Stop it if need be, collect what it printed and remove every trace of it from the host.

        Returns:
            What it printed; the same again when it is closed again.

        Raises:
            InfraError: the box cannot be removed; :meth:`Engine.reap` of a later run will try again.
        """
        ...


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether an engine can be used here and now."""

    ready: bool
    detail: str
    """Version and what it gives when ready; else what is missing and how to get it. One line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """What a user may say about an engine; each engine reads what concerns it."""

    runtime: str | None = None
    """Name of a registered OCI runtime, such as ``runsc``; None means the daemon's default."""
    starts_at_once: int = 4
    """Boxes that may be starting at the same time, at least 1."""
    builtin_only: bool = False
    """True when every agent of the run comes with the SDK and asks no model."""
    trust: bool = False
    """True allows any agent code where there is no isolation."""
    progress: Callable[[str], None] | None = None
    """Told, in one line, of what takes long."""


class Engine(Protocol):
    """A way of making boxes. Made from :class:`EngineOptions` alone, without effects.

    Safe to use from several threads.
    """

    @property
    def name(self) -> str:
        """As in the table of engines."""
        ...

    @property
    def isolation(self) -> Isolation:
        """What its boxes give; never claims more than is known."""
        ...

    @property
    def unenforced(self) -> tuple[str, ...]:
        """Fields of :class:`Limits` that a box can exceed here, or that hold for each process alone."""
        ...

    def check(self) -> Readiness:
        """Say whether boxes can be made here; never raises."""
        ...

    def prepare(self, source: AgentSource) -> Image:
        """Make ready whatever boxes of this agent need.

        Raises:
            InputError: the agent cannot be found, built or trusted on this engine.
            InfraError: the engine does not answer.
        """
        ...

    def start(self, spec: BoxSpec) -> Box:
        """Start one box; returns when the agent's process runs or has already ended.

        Raises:
            InputError: the command does not exist in the image.
            InfraError: the engine cannot start it.
        """
        ...

    def reap(self, is_owned: OwnerCheck) -> int:
        """Remove what earlier runs left behind.

        Args:
            is_owned: tells from a leftover's labels whether its owner still lives.

        Returns:
            How many leftovers were removed.

        Raises:
            InfraError: the engine does not answer.
        """
        ...

    def close(self) -> None:
        """Give up threads and connections; every box must have been closed before."""


class OwnerCheck(Protocol):
    """Tells whether the owner named by a leftover's labels still lives."""

    def __call__(self, labels: dict[str, str], /) -> bool:
        """Return True while the owner lives."""
        ...
