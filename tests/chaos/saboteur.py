"""Breaks parts of the machinery while a run goes on, at moments drawn from a seed."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable
from random import Random
from threading import Event, Thread
from typing import Self

from tests.chaos.victims import Being, Victim, services_of

Deed = Callable[[Victim, Random], bool]
"""Breaks something of a run; tells whether there was something to break."""

LOOK_AGAIN_S = 0.005
"""How soon a saboteur that found nothing to break looks again."""


def kill_service(victim: Victim, chance: Random) -> bool:
    """Kill a sandbox service, and with it every trace that it streams."""
    return _kill_one(services_of(victim), chance)


def kill_box(victim: Victim, chance: Random) -> bool:
    """Kill the process that holds an agent's box: bwrap on the outside, or the agent where there is no box.

    Who reaches into a box and kills an agent there is not told from the agent's own end.
    """
    return _kill_one([one for one in victim.children() if _is_box(one)], chance)


def kill_container(victim: Victim, chance: Random) -> bool:
    """Have the Docker daemon kill a container of the run."""
    label = f"label=fumehood.owner.pid={victim.pid}"
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
        ["docker", "kill", chance.choice(names)], capture_output=True, timeout=60, check=False
    )
    return killed.returncode == 0


class Saboteur:
    """Does deeds in a thread until it is stopped. A context manager."""

    def __init__(
        self, victim: Victim, deeds: tuple[Deed, ...], seed: int, pause_s: tuple[float, float]
    ) -> None:
        self.done: Counter[str] = Counter()
        """How often each deed was done."""
        self._victim = victim
        self._deeds = deeds
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
            deed = self._chance.choice(self._deeds)
            if self._strikes(deed):
                self.done[deed.__name__] += 1

    def _strikes(self, deed: Deed) -> bool:
        # A box may live for milliseconds: who looks only once a pause may never meet one.
        while self._victim.is_running and not self._stop.is_set():
            # Before there is a service, boxes are tried out, and a run whose boxes do not work ends at once.
            if services_of(self._victim) and deed(self._victim, self._chance):
                return True
            self._stop.wait(LOOK_AGAIN_S)
        return False


def _kill_one(beings: list[Being], chance: Random) -> bool:
    if not beings:
        return False
    chance.choice(sorted(beings)).kill()
    return True


def _is_box(one: Being) -> bool:
    command = one.command()
    return (
        b"--json-status-fd" in command or b"\0--args\0" in command or b"fumehood_agent" in command
    )
