"""A service keeps nothing of the episodes that it has closed."""

from __future__ import annotations

import pytest

from fumehood.orchestrator.service_pool import ServicePool
from fumehood.service.forked_episode import SPARES
from scripts.bench.flatness import AT_ONCE, SAMPLES, watch
from scripts.bench.workload import workload

EPISODES = 100
"""``make flatness`` plays ten thousand."""


@pytest.mark.slow
def test_nothing_of_closed_episodes_is_kept() -> None:
    with ServicePool(1) as pool:
        samples = list(watch(pool, workload(None), EPISODES))
    assert len(samples) == SAMPLES
    assert samples[-1].episodes == EPISODES
    # Connections of the last episodes may still be closing.
    assert samples[-1].descriptors <= samples[0].descriptors + AT_ONCE
    # The folders of the service, of the processes that are prepared for the next episodes, and of
    # the last episodes, which may still be closing.
    assert max(sample.files for sample in samples) <= 1 + SPARES + AT_ONCE
    assert samples[-1].resident_kb < 1.15 * samples[1].resident_kb
