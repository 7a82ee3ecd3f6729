"""The simulation of many nodes loses no episode and exceeds no capacity."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.bench.size_model import Cluster, Costs, saturating_nodes, simulate

FREE = Costs(node_s=0.2, wait_s=5.0, ray_s=0.0, scoring_s=0.0, driver_s=0.0)
EACH = 40
"""Episodes per node."""


def test_nodes_with_a_free_driver_play_in_proportion_to_their_number() -> None:
    one = simulate(FREE, Cluster(1, at_once=4), EACH)
    for nodes in (2, 10, 100):
        many = simulate(FREE, Cluster(nodes, at_once=4), nodes * EACH)
        assert many.per_s == pytest.approx(nodes * one.per_s)


@pytest.mark.parametrize("part", ["driver_s", "ray_s"])
@pytest.mark.parametrize("nodes", [1, 10, 100])
def test_no_number_of_nodes_exceeds_what_one_driver_can_do(part: str, nodes: int) -> None:
    costs = replace(FREE, **{part: 0.01})
    simulated = simulate(costs, Cluster(nodes, at_once=20), nodes * EACH, spread=0.5)
    assert simulated.per_s <= 1 / 0.01
    if nodes == 100:
        assert simulated.per_s == pytest.approx(1 / 0.01, rel=0.1)


def test_nodes_on_one_host_share_its_processors() -> None:
    cluster = Cluster(4, at_once=100, processors=2, one_host=True)
    assert simulate(FREE, cluster, 400).per_s <= 2 / FREE.node_s


def test_the_driver_is_busy_at_the_number_of_nodes_that_saturates_it() -> None:
    costs = replace(FREE, driver_s=0.01)
    nodes = round(saturating_nodes(costs, Cluster(1, at_once=4)))
    assert simulate(costs, Cluster(2 * nodes, 4), 200 * nodes).busy["driver"] > 0.9
    assert simulate(costs, Cluster(nodes // 2, 4), 50 * nodes).busy["driver"] < 0.6


@given(
    nodes=st.integers(1, 20),
    at_once=st.integers(1, 20),
    episodes=st.integers(1, 200),
    spread=st.floats(0, 1),
)
def test_every_episode_is_played_once(
    nodes: int, at_once: int, episodes: int, spread: float
) -> None:
    costs = Costs(node_s=0.2, wait_s=1.0, ray_s=0.001, scoring_s=0.002, driver_s=0.003)
    cluster = Cluster(nodes, at_once)
    simulated = simulate(costs, cluster, episodes, spread=spread)
    assert simulated.episodes == episodes
    assert simulated.busy["driver"] * simulated.seconds == pytest.approx(episodes * 0.003)
    assert simulated.busy["nodes"] * simulated.seconds == pytest.approx(episodes * 0.2)
    assert simulated == simulate(costs, cluster, episodes, spread=spread)
