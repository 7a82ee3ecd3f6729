"""What an attack is, and which wall must stop it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Wall(Enum):
    """What stands between an agent and the rest, from the inside out."""

    BOX = "box"
    """Namespaces, a read-only view, no privilege, limits: made by the engine."""
    SOCKET = "socket"
    """The one way out: a server that answers for one seat and knows no other."""
    SERVICE = "service"
    """What checks, counts and bounds every message."""
    ORCHESTRATOR = "orchestrator"
    """What reads outputs and traces: to it, all of them are data."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One hostile agent."""

    name: str
    file: str
    """In the folder of agents: Python, C or shell, by its suffix."""
    wall: Wall
    by: str
    """What of that wall stops it."""
    aim: str
    """What it is after, as a sentence without a subject."""
    limit: str = ""
    """The field of ``Limits`` it runs against; empty when it runs against none."""
    at_kernel: bool = False
    """Aims at the kernel it runs on. In a box with a kernel of its own, what it gets there is no prize."""
    wall_ms: int = 30_000
    """Time it is given."""
    calls: int = 2_000
    """Tool calls it is given."""
    memory_mb: int = 256
    """Memory its box is given, MiB."""
    repeats: bool = False
    """Prints what it was told, so no word of it may tell of a harness. It is given no arguments."""
    recorded: bool = False
    """Aims at those who read records: what it left is written down as a run's and shown."""


class Result(Enum):
    """How an attack went."""

    STOPPED = "stopped"
    NOT_STOPPED = "not stopped"
    NOT_APPLICABLE = "not applicable"
    """It cannot be tried here; the detail says why."""
    NOT_RUN = "not run"
    """It ended before it had tried anything, so nothing is proven."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One attack against one engine."""

    attack: Attack
    result: Result
    detail: str
    """What was seen; empty when nothing was."""
    attempts: int
    """Things the agent tried."""
    wall_ms: int
