"""Whether a process could run, as the kernel measures it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Progress:
    """For how long a process has run and waited until now."""

    is_stopped: bool
    """Whether a signal has stopped it."""
    ran_s: float
    """Processor time of its threads."""
    waited_s: float
    """Time in which threads could run, but no processor was free."""


def read_progress(pid: int) -> Progress | None:
    """Return the progress of a process; None if it has ended. Source: proc(5),
    Documentation/scheduler/sched-stats.rst."""
    folder = Path(f"/proc/{pid}")
    try:
        state = (folder / "stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
        threads = [
            (thread / "schedstat").read_text(encoding="ascii").split()
            for thread in (folder / "task").iterdir()
        ]
    except OSError:
        return None
    ran_ns, waited_ns = (sum(int(times[at]) for times in threads) for at in (0, 1))
    return Progress(state in "Tt", ran_ns / 1e9, waited_ns / 1e9)
