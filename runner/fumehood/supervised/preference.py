"""Lets a process run before boxes only while it needs little processor time.

A service runs before the boxes, and so do its processes of episodes: otherwise boxes that keep the
processors busy would delay the calls of other boxes. An agent can keep the process of an episode
busy. This process then gets the processor time of a box until it is no longer busy.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

LOOK_S = 0.25
"""Interval at which the fork server reads the processor time of preferred processes."""
SHARE = 0.25
"""Part of a processor that a preferred process may use indefinitely."""
NICE_OF_BUSY = 6
"""Gives the processor time of a box. Source: sched(7)."""
_CPU_CLOCK = 2
"""Of a whole process: CPUCLOCK_SCHED. Source: the kernel's posix-timers.h."""


def become_preferred(nice: int) -> None:
    """Give this process a separate group of the scheduler, with a priority; only for root.

    With automatic groups of sessions, the kernel divides processor time among sessions first, and
    uses the priority of a process only within its session. Source: sched(7).
    """
    with suppress(OSError):  # It is the leader of a session already.
        os.setsid()
    with suppress(OSError):  # The kernel may not group sessions, or a container may forbid it.
        Path("/proc/self/autogroup").write_text(str(nice), encoding="ascii")


class Preference:
    """The priority of one process, which its fork server changes. Not thread-safe."""

    def __init__(self, pid: int, preferred_cpu_s: float, nice: int, now_s: float) -> None:
        """Begin to measure.

        Args:
            pid: the process, which has called :func:`become_preferred`.
            preferred_cpu_s: processor time beyond ``SHARE`` for which it keeps its priority,
                seconds.
            nice: its priority while it is not busy.
            now_s: the monotonic time, seconds.
        """
        self.is_busy = False
        """Whether it has the processor time of a box."""
        self._pid = pid
        self._preferred_cpu_s = preferred_cpu_s
        self._nice = nice
        self._looked_s = now_s
        self._used_s = 0.0
        self._excess_s = 0.0

    def look(self, now_s: float) -> None:
        """Change the priority if the process has become busy, or is no longer busy."""
        try:
            used_s = time.clock_gettime(~self._pid << 3 | _CPU_CLOCK)
        except OSError:  # It has ended.
            return
        allowed_s = (now_s - self._looked_s) * SHARE
        excess_s = self._excess_s + used_s - self._used_s - allowed_s
        # Bounded, so that a process gets its priority back soon after long work.
        self._excess_s = min(max(excess_s, 0.0), 2 * self._preferred_cpu_s)
        self._looked_s, self._used_s = now_s, used_s
        if self._excess_s > self._preferred_cpu_s:
            # Each time, because a thread that was starting may have kept the priority.
            self.is_busy = True
            _set_nice(self._pid, NICE_OF_BUSY)
        elif self.is_busy and self._excess_s == 0:
            self.is_busy = False
            _set_nice(self._pid, self._nice)


def _set_nice(pid: int, nice: int) -> None:
    """Change the priority of all threads of a process, and of its session if it leads one."""
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError):  # The thread has ended, or this process may not.
                os.setpriority(os.PRIO_PROCESS, int(thread), nice)
    with suppress(OSError):
        # The session of another process may contain this one.
        if os.getsid(pid) == pid:
            Path(f"/proc/{pid}/autogroup").write_text(str(nice), encoding="ascii")
