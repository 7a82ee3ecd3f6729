"""A service keeps nothing of the episodes that it has closed."""

from __future__ import annotations

from fumehood.bench.flatness import AT_ONCE, LOOKS, watch
from fumehood.bench.workload import workload
from fumehood.orchestrator.service_pool import ServicePool

EPISODES = 100
"""Ten thousand are played by: make flatness."""


def test_nothing_of_closed_episodes_is_kept() -> None:
    with ServicePool(1) as pool:
        looks = list(watch(pool, workload(None), EPISODES))
    assert len(looks) == LOOKS
    assert looks[-1].episodes == EPISODES
    # A connection of the last episodes may be on its way out.
    assert looks[-1].descriptors <= looks[0].descriptors + AT_ONCE
    assert {look.sockets for look in looks} == {1}
    assert looks[-1].resident_kb < 1.15 * looks[1].resident_kb
