"""A process that uses much processor time runs after the processes that use little."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fumehood.supervised.fork_server import Child, ForkServer
from fumehood.supervised.limits import Limits
from fumehood.supervised.preference import NICE_OF_BUSY, Preference
from tests.parts import supervised_entries
from tests.parts.listening import wait_until

NICE = -5
CPU_S = 0.2

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root raises priorities")


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    names = ("work_on_request", "wait_for_channel")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
        before = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
        try:
            running = ForkServer({name: f"{supervised_entries.__name__}:{name}" for name in names})
        finally:
            os.setpriority(os.PRIO_PROCESS, 0, before)
    yield running
    running.close()


def nice(child: Child) -> int:
    return os.getpriority(os.PRIO_PROCESS, child.pid)


def start(server: ForkServer, entry: str, preferred_cpu_s: float | None) -> Child:
    child = server.start(entry, {}, Limits(preferred_cpu_s=preferred_cpu_s))
    child.channel.recv(64)
    return child


@pytest.mark.slow
def test_a_busy_process_loses_its_priority_and_gets_it_back(server: ForkServer) -> None:
    busy = start(server, "work_on_request", CPU_S)
    calm = start(server, "wait_for_channel", CPU_S)
    exempt = start(server, "work_on_request", None)
    assert os.getsid(busy.pid) == busy.pid, "its session has no other process"
    exempt.channel.send(b"1")
    busy.channel.send(b"1")
    assert wait_until(lambda: nice(busy) == NICE_OF_BUSY)
    assert (nice(calm), nice(exempt)) == (NICE, NICE)
    busy.channel.send(b"0")
    exempt.channel.send(b"0")
    assert wait_until(lambda: nice(busy) == NICE)
    for child in (busy, calm, exempt):
        child.kill()
        child.channel.close()


def test_a_process_below_its_share_stays_preferred(server: ForkServer) -> None:
    child = start(server, "wait_for_channel", CPU_S)
    preference = Preference(child.pid, 1e-9, NICE, now_s=0.0)
    preference.look(now_s=10_000.0)
    assert not preference.is_busy, "it used less than its share of 10,000 seconds"
    preference = Preference(child.pid, 1e-9, NICE, now_s=0.0)
    preference.look(now_s=1e-9)
    assert preference.is_busy, "the control: it used more than a nanosecond"
    child.kill()
    child.channel.close()


def test_a_process_that_has_ended_is_ignored(server: ForkServer) -> None:
    child = start(server, "wait_for_channel", CPU_S)
    preference = Preference(child.pid, 1e-9, NICE, now_s=0.0)
    child.kill()
    assert child.wait(30) is not None
    child.channel.close()
    preference.look(now_s=1.0)
    assert not preference.is_busy
