"""Kills services, boxes and containers during a run, at seeded random times."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable
from random import Random
from threading import Event, Thread
from typing import Self

from tests.chaos.commands import Process, RunningCommand, services_of

Breakage = Callable[[RunningCommand, Random], bool]
"""Breaks a part of a run; returns whether there was a part to break."""

LOOK_AGAIN_S = 0.005
"""Interval at which a breaker that found no part looks again."""


def kill_service(command: RunningCommand, random: Random) -> bool:
    """Kill a sandbox service, which ends every trace that it streams."""
    return _kill_one(services_of(command), random)


def kill_box(command: RunningCommand, random: Random) -> bool:
    """Kill the process of a box: the outer bwrap, or the agent where there is no box.

    Killing an agent inside its box could not be distinguished from the agent's own end.
    """
    return _kill_one([process for process in command.children() if _is_box(process)], random)


def kill_container(command: RunningCommand, random: Random) -> bool:
    """Kill a container of the run through the Docker daemon."""
    label = f"label=fumehood.owner.pid={command.pid}"
    listed = subprocess.run(
        ["docker", "ps", "-q", "--filter", label],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    names = sorted(listed.stdout.split())
    if not names:
        return False
    killed = subprocess.run(
        ["docker", "kill", random.choice(names)], capture_output=True, timeout=60, check=False
    )
    return killed.returncode == 0


class Breaker:
    """Breaks parts in a thread until it is stopped. A context manager."""

    def __init__(
        self,
        command: RunningCommand,
        breakages: tuple[Breakage, ...],
        seed: int,
        pause_s: tuple[float, float],
    ) -> None:
        self.done: Counter[str] = Counter()
        """How often each part was broken."""
        self._victim = command
        self._deeds = breakages
        self._chance = Random(seed)
        self._pause_s = pause_s
        self._stop = Event()
        self._thread = Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._stop.wait(self._chance.uniform(*self._pause_s)):
            breakage = self._chance.choice(self._deeds)
            if self._break_one(breakage):
                self.done[breakage.__name__] += 1

    def _break_one(self, breakage: Breakage) -> bool:
        # A box may exist for milliseconds, so one look per pause might never find one.
        while self._victim.is_running and not self._stop.is_set():
            # Before there is a service, the engine tests its boxes, and a failed test ends the run.
            if services_of(self._victim) and breakage(self._victim, self._chance):
                return True
            self._stop.wait(LOOK_AGAIN_S)
        return False


def _kill_one(processes: list[Process], random: Random) -> bool:
    if not processes:
        return False
    random.choice(sorted(processes)).kill()
    return True


def _is_box(process: Process) -> bool:
    command = process.command()
    return (
        b"--json-status-fd" in command or b"\0--args\0" in command or b"fumehood_agent" in command
    )
