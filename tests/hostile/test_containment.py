"""Attacks of the corpus are stopped, on every engine, but for what an engine says it cannot stop.

One or two for each thing that stops; ``make redteam`` runs them all.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from _pytest.mark import ParameterSet

from fumehood.redteam.attack import Attack, Result
from fumehood.redteam.probe import Probe
from fumehood.redteam.table import ATTACKS

ENGINES = [
    pytest.param(
        "docker", marks=[pytest.mark.docker, pytest.mark.image, pytest.mark.xdist_group("docker")]
    ),
    pytest.param(
        "runsc", marks=[pytest.mark.image, pytest.mark.runsc, pytest.mark.xdist_group("runsc")]
    ),
    pytest.param(
        "bubblewrap", marks=[pytest.mark.bubblewrap, pytest.mark.xdist_group("bubblewrap")]
    ),
]
ALWAYS = {
    *(
        "egress",
        "abstract-sockets",
        "host-processes",
        "host-files",
        "neighbours",
        "gold",
        "special-files",
    ),
    *("fork-bomb", "memory-bomb", "deaf", "mounts", "kernel-surface", "endless-line"),
    *("forged-messages", "replays", "second-client", "json-bombs", "terminal", "look-around"),
}
NOT_STOPPED = {"bubblewrap": {"memory-bomb", "shared-memory", "fill-inodes", "spin"}}
"""What takes control groups to stop, which bubblewrap has not."""
NO_SHELL = {"docker": {"fork-bomb-sh", "flood-sh"}, "runsc": {"fork-bomb-sh", "flood-sh"}}
"""What cannot be tried, because the image has no shell where it is made of Debian packages."""


def _chosen(attack: Attack) -> ParameterSet:
    marks = () if attack.name in ALWAYS else (pytest.mark.every_attack,)
    return pytest.param(attack, id=attack.name, marks=marks)


def _expected(engine: str, name: str) -> set[Result]:
    if name in NOT_STOPPED.get(engine, ()):
        return {Result.NOT_STOPPED}
    if name in NO_SHELL.get(engine, ()):
        return {Result.STOPPED, Result.NOT_APPLICABLE}
    return {Result.STOPPED}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("attack", [_chosen(attack) for attack in ATTACKS])
def test_an_attack_is_stopped(engine: str, attack: Attack, probes: Callable[[str], Probe]) -> None:
    verdict = probes(engine).attack(attack)
    if "no gcc here" in verdict.detail:
        pytest.skip(verdict.detail)
    assert verdict.result in _expected(engine, attack.name), verdict.detail
