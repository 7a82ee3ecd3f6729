"""Measures for how long this process was stopped. No seat is charged for that time.

A thread wakes up at a fixed interval. If it wakes up late, the process was stopped (SIGSTOP, a
frozen cgroup or machine), waited for a processor, or computed. Only the first is measured here: the
processor time of the process and the time that its threads waited for a processor are subtracted,
because other processes can cause both, a box for example. Source: proc(5), /proc/PID/schedstat.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import cache
from threading import Lock, Thread

INTERVAL_NS = 250_000_000
STOP_NS_MIN = 500_000_000
"""Shorter gaps are not counted."""
READING_NS = 1_000_000_000
"""Interval between readings of the processor time. A reading takes longer than everything else that
a process does while its agent waits. A stop is measured as shorter by the processor time that the
process used since the last reading."""
_LINE_BYTES = 128


class StopMeter:
    """Counts the time for which this process was stopped. Safe to use from several threads."""

    def __init__(
        self,
        now_ns: Callable[[], int] = time.monotonic_ns,
        busy_ns: Callable[[], int] | None = None,
        *,
        interval_ns: int = INTERVAL_NS,
    ) -> None:
        """Begin to measure.

        :meth:`start` starts a thread that calls :meth:`beat`; without it the caller does so, at
        the interval.

        Args:
            now_ns: the clock, nanoseconds.
            busy_ns: returns for how long the process ran or waited to run, nanoseconds.
            interval_ns: between two beats, nanoseconds. A stop is measured as shorter by up to
                this time.
        """
        self.interval_ns = interval_ns
        self._beats_a_reading = max(1, READING_NS // interval_ns)
        self._now_ns = now_ns
        self._busy_ns = busy_ns or BusyTime().passed_ns
        self._lock = Lock()
        self._stopped_ns = 0
        self._last_ns = now_ns()
        self._last_busy_ns = self._busy_ns()
        self._beats = 0

    def start(self) -> StopMeter:
        """Measure regularly from now on, in a thread."""
        Thread(target=self._beat_regularly, name="stop-meter", daemon=True).start()
        return self

    def stopped_ns(self) -> int:
        """Return the time for which the process was stopped so far, nanoseconds."""
        if self._now_ns() - self._last_ns > self.interval_ns + STOP_NS_MIN:
            # The process continues right now, and the thread has not run yet.
            self.beat()
        return self._stopped_ns

    def beat(self) -> None:
        """Count the time since the last call, if the process was stopped in between."""
        with self._lock:
            now_ns = self._now_ns()
            gap_ns, self._last_ns = now_ns - self._last_ns - self.interval_ns, now_ns
            self._beats += 1
            if gap_ns < STOP_NS_MIN and self._beats % self._beats_a_reading:
                return
            busy_ns = self._busy_ns()
            stopped_ns = gap_ns - max(0, busy_ns - self._last_busy_ns)
            self._last_busy_ns = busy_ns
            if stopped_ns >= STOP_NS_MIN:
                self._stopped_ns += stopped_ns

    def _beat_regularly(self) -> None:
        while True:
            time.sleep(self.interval_ns / 1e9)
            self.beat()


@cache
def stop_meter() -> StopMeter:
    """Return the meter of this process, which measures regularly. Not for a forked process."""
    return StopMeter().start()


class BusyTime:
    """Counts processor time of this process, and for how long its threads waited for processors.

    The kernel reports no waiting time of a thread that has ended, so each reading adds the increase
    since the reading before.
    """

    def __init__(self) -> None:
        self._waited_ns = 0
        self._by_thread: dict[str, int] = {}

    def passed_ns(self) -> int:
        """Return the time so far, nanoseconds; never less than before."""
        before, self._by_thread = self._by_thread, dict(_waits_ns())
        for thread, waited_ns in self._by_thread.items():
            # A later thread can have the number of one that has ended.
            earlier_ns = before.get(thread, 0)
            self._waited_ns += waited_ns - (earlier_ns if earlier_ns <= waited_ns else 0)
        return time.process_time_ns() + self._waited_ns


def _waits_ns() -> Iterator[tuple[str, int]]:
    """Yield each thread of this process with the time that it waited for a processor."""
    try:
        threads = os.listdir("/proc/self/task")
    except OSError:  # No descriptor is free.
        threads = []
    for thread in threads:
        try:
            # An unbuffered file of Python makes twice as many system calls.
            file = os.open(f"/proc/self/task/{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
            try:
                yield thread, int(os.read(file, _LINE_BYTES).split()[1])
            finally:
                os.close(file)
        except (OSError, IndexError, ValueError):
            continue  # The thread has ended, or the kernel does not count.
