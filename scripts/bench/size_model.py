"""A discrete-event simulation of a run on many nodes, from measured costs per episode."""

from __future__ import annotations

import random
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count


@dataclass(frozen=True, slots=True)
class Costs:
    """What one episode costs, seconds of processor time except for ``wait_s``."""

    node_s: float
    """On its node: the box with its agent, the service, and the process of the node."""
    wait_s: float
    """Time in which the agent waits and uses no processor."""
    ray_s: float
    """In the processes of Ray, which pass on every call; as if they were one."""
    scoring_s: float
    """In the processes that score."""
    driver_s: float
    """In the process of the driver, which runs Python in one thread at a time."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The machines of a run."""

    nodes: int
    at_once: int
    """Episodes that each node plays at once."""
    processors: int = 2
    """Of each machine."""
    one_host: bool = False
    """Whether all nodes share the processors of one machine."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """The result of a simulation."""

    episodes: int
    """Number of finished episodes."""
    seconds: float
    """From the first start of an episode to the last end."""
    played_s: float
    """From the first start of an agent's wait to the last end of one."""
    busy: dict[str, float]
    """Mean number of busy processors: driver, ray, scoring, and all nodes together."""

    @property
    def per_s(self) -> float:
        """Episodes per second."""
        return self.episodes / self.seconds


class _Station:
    """Processors that serve in order of arrival."""

    def __init__(self, processors: int) -> None:
        self._free_at = [0.0] * processors
        heapify(self._free_at)
        self.busy_s = 0.0

    def end(self, now: float, seconds: float) -> float:
        """Return when work that arrives now is done."""
        end = max(now, self._free_at[0]) + seconds
        heapreplace(self._free_at, end)
        self.busy_s += seconds
        return end


def simulate(costs: Costs, cluster: Cluster, episodes: int, *, spread: float = 0.0) -> Simulated:
    """Play episodes until all are finished.

    Each episode uses its node, waits, and then uses the head, a scoring process and the driver.
    Only then its place on the node is free for the next one, as in a run.

    Args:
        costs: of one episode.
        cluster: the machines.
        episodes: how many, at least 1.
        spread: waits differ by at most this share of ``wait_s``, from 0 to 1.
    """
    chance = random.Random(0)
    hosts = [_Station(cluster.processors) for _ in range(1 if cluster.one_host else cluster.nodes)]
    shared = [_Station(1), _Station(cluster.processors), _Station(1)]
    shared_s = [costs.ray_s, costs.scoring_s, costs.driver_s]
    numbers = count()
    # Time, a number for a stable order, node, and step: 0 starts, 1 waits, then the shared parts.
    begun = min(episodes, cluster.nodes * cluster.at_once)
    events = [(0.0, next(numbers), slot % cluster.nodes, 0) for slot in range(begun)]
    finished, now, began, ended = 0, 0.0, float("inf"), 0.0
    while events:
        now, _, node, step = heappop(events)
        if step == 0:
            then = hosts[node % len(hosts)].end(now, costs.node_s)
        elif step == 1:
            then = now + costs.wait_s * (1 + spread * chance.uniform(-1, 1))
            began, ended = min(began, now), max(ended, then)
        elif step < 2 + len(shared):
            then = shared[step - 2].end(now, shared_s[step - 2])
        else:
            finished += 1
            if begun < episodes:
                begun += 1
                heappush(events, (now, next(numbers), node, 0))
            continue
        heappush(events, (then, next(numbers), node, step + 1))
    names = ("ray", "scoring", "driver")
    busy = {name: station.busy_s / now for name, station in zip(names, shared, strict=True)}
    busy["nodes"] = sum(host.busy_s for host in hosts) / now
    return Simulated(finished, now, ended - began, busy)


def saturating_nodes(costs: Costs, cluster: Cluster) -> float:
    """Return the number of nodes that keep the driver, or the head of the cluster, always busy.

    Args:
        costs: of one episode.
        cluster: its ``nodes`` is not used.
    """
    alone_s = costs.node_s + costs.wait_s + costs.ray_s + costs.scoring_s + costs.driver_s
    node_per_s = min(cluster.at_once / alone_s, cluster.processors / costs.node_s)
    return 1 / max(costs.driver_s, costs.ray_s) / node_per_s
