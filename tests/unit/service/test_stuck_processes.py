"""A process that does not close its episode is killed if it is itself the reason."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

from fumehood.service.forked_episode import CLOSE_CPU_S, CLOSE_TIMEOUT_S, is_stuck
from fumehood.supervised.progress import Progress

BEFORE = Progress(is_stopped=False, ran_s=3.0, waits_s={"1": 7.0, "2": 1.0})


def _after(ran_s: float, waited_s: float) -> Progress:
    return Progress(False, 3.0 + ran_s, {"1": 7.0, "2": 1.0 + waited_s, "3": waited_s / 2})


def test_a_process_that_sleeps_is_stuck_after_the_limit() -> None:
    assert not is_stuck(BEFORE, _after(0, 0), CLOSE_TIMEOUT_S - 0.1)
    assert is_stuck(BEFORE, _after(0, 0), CLOSE_TIMEOUT_S)


def test_a_process_that_computes_is_stuck_also_on_a_busy_machine() -> None:
    waited_s = CLOSE_TIMEOUT_S - CLOSE_CPU_S
    assert not is_stuck(BEFORE, _after(CLOSE_CPU_S, waited_s), CLOSE_TIMEOUT_S)
    assert is_stuck(BEFORE, _after(CLOSE_CPU_S + 0.1, waited_s), CLOSE_TIMEOUT_S)


def test_a_process_that_only_waits_for_a_processor_is_not_stuck() -> None:
    assert not is_stuck(BEFORE, _after(0.1, 2 * CLOSE_TIMEOUT_S), 2 * CLOSE_TIMEOUT_S)


def test_many_threads_that_wait_a_little_are_not_starved() -> None:
    waits = {str(thread): 0.1 * CLOSE_TIMEOUT_S for thread in range(100)}
    assert is_stuck(BEFORE, Progress(False, 3.1, waits), CLOSE_TIMEOUT_S)


def test_a_stopped_process_is_not_stuck() -> None:
    assert not is_stuck(BEFORE, replace(_after(5, 0), is_stopped=True), 3 * CLOSE_TIMEOUT_S)


LIMIT = """
import resource

from fumehood.service.episode_process import CALL_CPU_S, _limit_call

usage = resource.getrusage(resource.RUSAGE_SELF)
hard_s = int(usage.ru_utime + usage.ru_stime) + CALL_CPU_S + 1
resource.setrlimit(resource.RLIMIT_CPU, (hard_s - 1, hard_s))
_limit_call()
soft_s, _ = resource.getrlimit(resource.RLIMIT_CPU)
print(hard_s - soft_s)
"""


def test_the_kernel_signals_a_process_before_it_kills_it_for_all_its_processor_time() -> None:
    done = subprocess.run([sys.executable, "-c", LIMIT], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n", "a process that is killed looks like one that an outsider killed"
