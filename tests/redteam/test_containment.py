"""Every engine stops the attacks, except those that it declares as not stopped.

One or two attacks for each protection; ``make redteam`` runs them all.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from _pytest.mark import ParameterSet

from fumehood.redteam.attacks import ATTACKS, Attack, Result
from fumehood.redteam.probe import Probe

ENGINES = [
    pytest.param(
        "docker", marks=[pytest.mark.docker, pytest.mark.image, pytest.mark.xdist_group("docker")]
    ),
    pytest.param(
        "runsc",
        marks=[
            pytest.mark.image,
            pytest.mark.runsc,
            pytest.mark.slow,
            pytest.mark.xdist_group("runsc"),
        ],
    ),
    pytest.param("oci", marks=[pytest.mark.oci, pytest.mark.image, pytest.mark.xdist_group("oci")]),
    pytest.param(
        "oci-runsc",
        marks=[
            pytest.mark.oci,
            pytest.mark.image,
            pytest.mark.runsc,
            pytest.mark.release,
            pytest.mark.xdist_group("oci-runsc"),
        ],
    ),
    pytest.param(
        "bubblewrap", marks=[pytest.mark.bubblewrap, pytest.mark.xdist_group("bubblewrap")]
    ),
    *(
        pytest.param(
            name,
            marks=[
                pytest.mark.bubblewrap,
                pytest.mark.release,
                pytest.mark.xdist_group("bubblewrap"),
            ],
        )
        for name in ("bubblewrap-new-starts", "bubblewrap-prepared")
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
    *("lock-board", "page-cache", "shared-quotas", "link-counts"),
    *("forged-messages", "replays", "second-client", "json-bombs", "terminal", "look-around"),
}
_SLOW_END = "on an overloaded machine, its own episode ends more than 20 seconds late"
KNOWN_OPEN = {str(engine.values[0]): {"world-hang": _SLOW_END} for engine in ENGINES}
"""Attacks that are not stopped yet, with the reason. The list must shrink, never grow."""
WITHOUT_CONTROL_GROUPS = {"memory-bomb", "shared-memory", "fill-inodes", "spin"}
NOT_STOPPED = {
    name: set() if os.geteuid() == 0 else WITHOUT_CONTROL_GROUPS
    for name in ("bubblewrap", "bubblewrap-new-starts", "bubblewrap-prepared")
}
"""Stopping these needs control groups, which bubblewrap uses only if root starts it."""
NO_SHELL = dict.fromkeys(
    ("docker", "runsc", "oci", "oci-runsc"), frozenset({"fork-bomb-sh", "flood-sh"})
)
"""Not applicable if the image is made from Debian packages, because it has no shell."""


def _chosen(attack: Attack) -> ParameterSet:
    marks = () if attack.name in ALWAYS else (pytest.mark.every_attack,)
    return pytest.param(attack, id=attack.name, marks=marks)


def _expected(engine: str, name: str) -> set[Result]:
    if name in KNOWN_OPEN[engine]:
        return {Result.STOPPED, Result.NOT_STOPPED}
    if name in NOT_STOPPED.get(engine, ()):
        return {Result.NOT_STOPPED}
    if name in NO_SHELL.get(engine, ()):
        return {Result.STOPPED, Result.NOT_APPLICABLE}
    return {Result.STOPPED}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("attack", [_chosen(attack) for attack in ATTACKS])
def test_an_attack_is_stopped(engine: str, attack: Attack, probes: Callable[[str], Probe]) -> None:
    verdict = probes(engine).attack(attack)
    if "needs gcc" in verdict.detail:
        pytest.skip(verdict.detail)
    assert verdict.result in _expected(engine, attack.name), verdict.detail
