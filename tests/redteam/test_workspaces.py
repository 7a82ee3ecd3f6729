"""Attacks from workspaces and verifiers, whose programs are root, are stopped too.

A few attacks for each place; ``make redteam`` runs them all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from fumehood.engines.registry import choose_engine
from fumehood.redteam.attacks import OPEN_IN_WORKSPACES, WORKSPACE_ATTACKS, Attack, Result
from fumehood.redteam.places import Place
from fumehood.redteam.probe import Probe

ALWAYS = {"other-boxes", "egress", "neighbours", "host-files", "kernel-files", "mounts", "devices"}
ENGINES = [
    pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.xdist_group("docker")]),
    pytest.param("oci", marks=[pytest.mark.oci, pytest.mark.xdist_group("oci")]),
]


@pytest.fixture(scope="module")
def probe_at() -> Iterator[Callable[[str, Place], Probe]]:
    """Return the probe of an engine at a place."""
    with ExitStack() as stack:
        ready: dict[tuple[str, Place], Probe] = {}

        def probe_of(name: str, place: Place) -> Probe:
            if (name, place) not in ready:
                engine = stack.enter_context(closing(choose_engine(name).engine))
                probe = Probe(engine, interference=False, place=place)
                ready[name, place] = stack.enter_context(probe)
            return ready[name, place]

        yield probe_of


@pytest.mark.slow
@pytest.mark.image
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("place", [Place.WORKSPACE, Place.VERIFIER], ids=lambda place: place.name)
@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(
            attack,
            id=attack.name,
            marks=() if attack.name in ALWAYS else (pytest.mark.every_attack,),
        )
        for attack in WORKSPACE_ATTACKS
    ],
)
def test_an_attack_from_a_workspace_is_stopped(
    engine: str, place: Place, attack: Attack, probe_at: Callable[[str, Place], Probe]
) -> None:
    verdict = probe_at(engine, place).attack(attack)
    if "needs gcc" in verdict.detail:
        pytest.skip(verdict.detail)
    if os.geteuid() == 0 or attack.name not in OPEN_IN_WORKSPACES:
        assert verdict.result is Result.STOPPED, verdict.detail
