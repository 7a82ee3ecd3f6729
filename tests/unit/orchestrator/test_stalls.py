"""The orchestrator sees that a process of a service is stopped, children included."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from fumehood.orchestrator.stalls import Stalls
from tests.parts.listening import wait_until

WITH_A_CHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
child.wait()
"""


@pytest.fixture
def service() -> Iterator[tuple[int, int]]:
    """The process IDs of a process and of its child."""
    with subprocess.Popen(
        [sys.executable, "-c", WITH_A_CHILD], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("stopped", [0, 1])
def test_a_stopped_process_is_counted_until_it_continues(
    stopped: int, service: tuple[int, int]
) -> None:
    stalls = Stalls(lambda: [service[0]])
    try:
        os.kill(service[stopped], signal.SIGSTOP)
        assert wait_until(lambda: stalls.stopped_ms() >= 400)
        assert stalls.delayed_ms() >= 400
    finally:
        stalls.stop()


def test_a_process_that_runs_or_has_ended_is_not_counted(service: tuple[int, int]) -> None:
    stalls = Stalls(lambda: [service[0], 2**22 - 1])
    try:
        assert stalls.stopped_ms() == 0
    finally:
        stalls.stop()
