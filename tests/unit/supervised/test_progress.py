"""The progress of a process counts everything that it did."""

from __future__ import annotations

import os
import time
from threading import Thread

from fumehood.supervised.progress import read_progress

BUSY_S = 0.1


def test_the_processor_time_includes_that_of_ended_threads() -> None:
    before = read_progress(os.getpid())
    thread = Thread(target=_compute)
    thread.start()
    thread.join()
    after = read_progress(os.getpid())
    assert before is not None
    assert after is not None
    # The kernel counts in hundredths of a second.
    assert after.ran_s - before.ran_s >= BUSY_S - 0.02


def _compute() -> None:
    while time.thread_time() < BUSY_S:
        pass
