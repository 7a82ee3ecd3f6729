"""Whether a process could run, as the kernel measures it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Progress:
    """For how long a process has run and waited until now."""

    is_stopped: bool
    """Whether a signal has stopped it."""
    ran_s: float
    """Processor time of its threads, ended ones included."""
    waits_s: Mapping[str, float]
    """By thread: the time in which it could run, but no processor was free."""

    def waited_s(self, before: Progress | None = None) -> float:
        """Return the longest wait of one thread, since an earlier progress if there is one.

        Not the sum: a process could start a hundred threads that wake up together and wait for each
        other.
        """
        known = {} if before is None else before.waits_s
        waits = (wait_s - known.get(thread, 0.0) for thread, wait_s in self.waits_s.items())
        return max(waits, default=0.0)


def read_progress(pid: int) -> Progress | None:
    """Return the progress of a process; None if it has ended. Source: proc(5),
    Documentation/scheduler/sched-stats.rst."""
    folder = Path(f"/proc/{pid}")
    try:
        state, *numbers = _stat(folder)
        times = {
            thread.name: (thread / "schedstat").read_text(encoding="ascii").split()
            for thread in (folder / "task").iterdir()
        }
    except OSError:
        return None
    ran_s = sum(map(int, numbers[10:12])) / os.sysconf("SC_CLK_TCK")
    waits_s = {thread: int(waited_ns) / 1e9 for thread, (_, waited_ns, *_) in times.items()}
    return Progress(state in "Tt", ran_s, waits_s)


def is_running(pid: int) -> bool:
    """Return whether a thread of a process has neither ended nor been stopped, as far as this one
    sees. The first thread can end before the others."""
    try:
        return any(_stat(thread)[0] not in "TtZX" for thread in Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return False


def _stat(folder: Path) -> list[str]:
    """Return the fields of a process or thread from its state on."""
    stat = (folder / "stat").read_text(encoding="ascii", errors="replace")
    return stat.rpartition(")")[2].split()
