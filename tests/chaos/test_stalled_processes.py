"""No result changes while the project's own processes are stopped or wait for a processor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.chaos.commands import RunningCommand, services_of
from tests.chaos.workspace import Results, Workspace, results_of, rows_of, workspace
from tests.parts.listening import wait_until

WALL_TIME_S = 6
STOPPED_S = 20.0
"""Longer than the wall time, and shorter than the deadlines of calls to a service."""
ORCHESTRATOR_STOPPED_S = 30.0
SPINNING = 8
TASKS = 8
AGENT = """
import time


class Agent:
    '''Takes a third of its wall time for an episode.'''

    def reset(self):
        pass

    def act(self, observation):
        if len(observation["transcript"]) >= 4:
            return None
        time.sleep(0.5)
        tool = observation["tool_schemas"][0]["name"]
        return {"tool_name": tool, "args": {}}
"""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def space() -> Iterator[Workspace]:
    """A workspace with the agent in its root."""
    with workspace() as made:
        (made.root / "slow_agent.py").write_text(AGENT, encoding="utf-8")
        yield made


@pytest.fixture(scope="module")
def quiet(space: Workspace) -> Results:
    """The results of a run that nothing disturbs."""
    return _disturbed(space, "quiet", lambda command: None)


def _disturbed(space: Workspace, name: str, disturb: Callable[[RunningCommand], None]) -> Results:
    """Return the results of a run that is disturbed when its first episodes are running."""
    out = space.root / name
    suite = space.suite("tasks", TASKS)
    words = ("--agent", "slow_agent:Agent", "--engine", "process", "--i-trust-this-agent")
    limits = ("--wall-time-s", str(WALL_TIME_S), "--concurrency", "2", "--out", str(out))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(space.root)
        command = space.start("run", str(suite), *words, *limits)
    with command:
        assert wait_until(lambda: bool(rows_of(out)) or not command.is_running, 300)
        disturb(command)
        assert command.wait(900) is not None
        results = results_of(out)
        assert len(results) == TASKS, command.output()
    return results


@contextmanager
def _stopped(groups: list[int], *processes: int) -> Iterator[None]:
    """Stop process groups and processes, and continue them."""
    for group in groups:
        os.killpg(group, signal.SIGSTOP)
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)
        for group in groups:
            os.killpg(group, signal.SIGCONT)


def test_a_stopped_service_changes_no_result(space: Workspace, quiet: Results) -> None:
    def stop(command: RunningCommand) -> None:
        services = [process.pid for process in services_of(command)]
        assert services
        with _stopped(services):
            command.wait(STOPPED_S)

    assert _disturbed(space, "service", stop) == quiet


def test_a_stopped_orchestrator_changes_no_result(space: Workspace, quiet: Results) -> None:
    def stop(command: RunningCommand) -> None:
        with _stopped([], command.pid):
            command.wait(ORCHESTRATOR_STOPPED_S)

    assert _disturbed(space, "orchestrator", stop) == quiet


def test_a_stopped_orchestrator_with_all_its_processes_changes_no_result(
    space: Workspace, quiet: Results
) -> None:
    def stop(command: RunningCommand) -> None:
        with _stopped([], *(process.pid for process in command.descendants()), command.pid):
            command.wait(ORCHESTRATOR_STOPPED_S)

    assert _disturbed(space, "everything", stop) == quiet


def test_spinning_processes_change_no_result(space: Workspace, quiet: Results) -> None:
    spinning: list[subprocess.Popen[bytes]] = []

    def spin(command: RunningCommand) -> None:
        spinning.extend(
            subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(SPINNING)
        )

    try:
        assert _disturbed(space, "load", spin) == quiet
    finally:
        for process in spinning:
            process.kill()
            process.wait()
