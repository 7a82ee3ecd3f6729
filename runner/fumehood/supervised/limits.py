"""The limits of a supervised process, what separates it from the host, and how it ended."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from fumehood.core.json_values import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one process. Source: getrlimit(2)."""

    memory_bytes: int = 1 << 30
    """Private memory, with the memory that it shares with the server (RLIMIT_DATA). An allocation
    beyond it fails, which Python reports as MemoryError. A process has 256 GiB more addresses
    (RLIMIT_AS)."""
    cpu_s: int = 60
    """Processor time of all threads."""
    deadline_s: float | None = None
    """Time from the start until it is killed; None for no deadline."""
    processes: int = 128
    """Threads, if the process has its own user, because root started the server; 0 for no further
    thread."""
    open_files: int = 256
    """File descriptors."""
    file_bytes: int = 64 << 20
    """Size of one file that it writes."""
    preferred_cpu_s: float | None = None
    """Processor time beyond a share, until which it keeps the priority of its server, if root
    started that; None keeps it always."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Files that a process may use. By default: those that Python needs, read-only."""

    folder: bool = False
    """Create a folder that only the process may write. It is removed when the process ends."""
    readable: tuple[str, ...] = ()
    """Further folders and files that it may read. They must exist."""
    writable: tuple[str, ...] = ()
    """Further folders that it may write, if its user may. They must exist."""
    starts_programs: bool = False
    """Whether it may start programs and fork."""


def access_from_json(value: Mapping[str, Any]) -> Access:
    """Return the access whose fields ``value`` has, with lists instead of tuples."""
    paths = {name: tuple(value[name]) for name in ("readable", "writable")}
    return Access(**{**value, **paths})


class EndReason(Enum):
    """Why a supervised process ended."""

    EXITED = "exited"
    """Its work was done."""
    FAILED = "failed"
    """It raised an exception, or exited by itself with another status than 0."""
    DEADLINE = "deadline"
    """It was killed at its deadline."""
    STALLED = "stalled"
    """It was killed at its deadline, but something had stopped it, or no processor was free."""
    CPU = "cpu"
    """It exceeded its processor time."""
    MEMORY = "memory"
    """It exceeded its memory."""
    REQUESTED = "requested"
    """The owner killed it."""
    SIGNAL = "signal"
    """Another signal killed it: it crashed, or an outsider killed it."""
    LOST = "lost"
    """The fork server ended, and every process with it."""


_TEXTS = {
    EndReason.EXITED: "ended",
    EndReason.FAILED: "failed with status {self.status}",
    EndReason.DEADLINE: "did not end within its deadline",
    EndReason.STALLED: "was stopped or got no processor until its deadline",
    EndReason.CPU: "exceeded its processor time ({self.cpu_s:.1f} s used)",
    EndReason.MEMORY: "exceeded its memory",
    EndReason.REQUESTED: "was stopped",
    EndReason.SIGNAL: "was killed by signal {self.status}",
    EndReason.LOST: "ended with its fork server",
}

CRASH_SIGNALS = frozenset(
    {signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGSYS}
)
"""Signals that a crash of the process itself causes."""
OUTSIDE_SIGNALS = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM})
"""Signals that end a process only if another process, or the kernel, sends them: the filter of
system calls rejects them."""


@dataclass(frozen=True, slots=True)
class End:
    """How a supervised process ended."""

    reason: EndReason
    status: int = 0
    """Exit status, or the signal's number with ``SIGNAL``."""
    cpu_s: float = 0.0
    """Processor time that it used."""
    peak_bytes: int = 0
    """Largest resident memory, with what it shared with the server."""
    detail: str = ""
    """With ``FAILED``: the exception."""

    @property
    def is_own_fault(self) -> bool:
        """Whether the process itself caused its end, and not its owner or an outsider."""
        if self.reason is EndReason.SIGNAL:
            return self.status not in OUTSIDE_SIGNALS
        return self.reason not in (EndReason.REQUESTED, EndReason.LOST, EndReason.STALLED)

    def __str__(self) -> str:
        text = _TEXTS[self.reason].format(self=self)
        return f"{text}: {self.detail}" if self.detail else text

    def to_json(self) -> JsonObject:
        """Return the end as a JSON object."""
        return {**asdict(self), "reason": self.reason.value}


def end_from_json(value: JsonObject) -> End:
    """Return the end that :meth:`End.to_json` wrote."""
    match value:
        case {
            "reason": str(reason),
            "status": int(status),
            "cpu_s": int(cpu_s) | float(cpu_s),
            "peak_bytes": int(peak_bytes),
            "detail": str(detail),
        }:
            return End(EndReason(reason), status, cpu_s, peak_bytes, detail)
    raise ValueError(f"not an end: {value!r}")
