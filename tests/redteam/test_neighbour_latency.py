"""No flood raises the latency of a neighbour's calls beyond the limit. Timings need a quiet
machine."""

from __future__ import annotations

from contextlib import closing

import pytest

from fumehood.engines.engine import EngineOptions
from fumehood.engines.registry import choose_engine
from fumehood.redteam.attacks import ATTACKS, Attack, Result
from fumehood.redteam.probe import Probe

KNOWN_OPEN = {
    attack.name: "all episodes of a service share its process"
    for attack in ATTACKS
    if attack.file == "neighbour_floods.py"
}
"""Floods whose latency is not within the limit yet, with the reason. The list must shrink."""


@pytest.mark.slow
@pytest.mark.every_attack
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.image]),
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    ],
)
def test_no_flood_slows_a_neighbour(engine: str) -> None:
    floods = [attack for attack in ATTACKS if attack.file == "neighbour_floods.py"]
    with closing(choose_engine(engine, EngineOptions()).engine) as chosen, Probe(chosen) as probe:
        slowed = {attack.name: _slowing(probe, attack) for attack in floods}
    found = {name: detail for name, detail in slowed.items() if detail}
    assert found.keys() <= KNOWN_OPEN.keys(), found


def _slowing(probe: Probe, attack: Attack) -> str:
    verdict = probe.attack(attack)
    return verdict.detail if verdict.result is Result.NOT_STOPPED else ""
