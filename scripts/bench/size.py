"""``make bench-size``: what an episode costs by part, and what follows for many nodes.

Costs are processor time, which depends less on the load of the machine than wall time. They are
measured on one node; from them, a simulation predicts 1, 2 and 4 nodes, which are then measured on
this host, and 10 to 1,000 nodes, which are not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fumehood.core.errors import InfraError
from scripts.bench.measure import Figure, load_of_machine, ratio
from scripts.bench.process_tree import command, is_service, process_tree, processor_s
from scripts.bench.size_model import Cluster, Costs, saturating_nodes, simulate
from scripts.bench.waiting import AGENT, TASK

NODES = (1, 2, 4)
THREE, THREE_MIN = 3, 2.7
FEW_CALLS, MANY_CALLS = 10, 60
COSTED_AT_ONCE, COSTED_WAIT_S = 4, 0.02
ALONE_EPISODES, ALONE_AT_ONCE = 200, 64
COSTED_EPISODES, FIRST_ROWS, LAST_ROWS = 40, 6, 36
"""Processor time is read after two numbers of rows, while episodes start and end."""
CHECKED_AT_ONCE, CHECKED_WAIT_S, ROUNDS = 4, 4.0, 3
"""Long waits, so that few processors suffice for all nodes."""
LARGE_AT_ONCE = 64
LARGE = {"1 minute": 60.0, "10 minutes": 600.0}
"""How long the agent of an episode waits, on large clusters."""
LOOK_S = 0.2

SIGNS_OF_NODE = ("ray::NodeActor", "spawn_main(")
"""In the command of a process that is a node, with and without Ray."""
SEAL = "run: seal"
"""A part of the driver that comes after the last episode."""
PARTS = {
    "box": "node: start of the box, and the agent",
    "service": "node: service",
    "node": "node: process that plays",
    "ray": "Ray's processes",
    "driver": "driver: process",
    "scoring": "driver: scoring processes",
}


@dataclass(frozen=True, slots=True)
class Played:
    """What one run used and what its agents printed."""

    parts_s: Mapping[str, float]
    """Processor time per episode, by the names of ``PARTS``."""
    driver_parts_s: Mapping[str, float]
    """Processor time per episode in parts of the process of the driver."""
    per_s: float
    """Episodes per second, from the first start of an agent to the last end of one."""
    driver_s: float
    """Processor time of the process of the driver per episode, from the first answer of a node to
    the last row."""
    answered_per_s: float
    """Episodes per second, from the first answer of a node to the last row."""


def main() -> None:
    """Measure, simulate, and print."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="bubblewrap")
    parser.add_argument(
        "--ray",
        action="store_true",
        help="reach the nodes over Ray (--on local:N) instead of sockets",
    )
    options = parser.parse_args()
    _print([load_of_machine("at the start")])
    with tempfile.TemporaryDirectory() as name:
        runs = _Runs(Path(name), options.engine, has_ray=options.ray)
        few, many = (
            runs.play(1, COSTED_EPISODES, COSTED_AT_ONCE, calls, COSTED_WAIT_S)
            for calls in (FEW_CALLS, MANY_CALLS)
        )
        _print(_costs_by_part(few, many))
        costs = _costs(few, FEW_CALLS * CHECKED_WAIT_S)
        _print(_large(costs))
        _print(_alone(runs, costs, Path(name, "answers")))
        for nodes in NODES:
            _print(_check(runs, costs, nodes))
    _print([load_of_machine("at the end")])


def nodes_beside_one(engine: str) -> Figure:
    """Return the ratio of the episodes per second of three nodes to those of one.

    The agents wait most of the time. The driver reaches the nodes over sockets.
    """
    rates = dict[int, float]()
    with tempfile.TemporaryDirectory() as name:
        runs = _Runs(Path(name), engine, has_ray=False)
        for nodes in (1, THREE):
            rates[nodes] = runs.waiting(nodes).per_s
    return ratio(
        "episodes with agents that wait on 3 nodes to those on 1, over sockets",
        rates[THREE],
        rates[1],
        THREE_MIN,
        at_least=True,
        detail=f"({rates[THREE]:.2f} against {rates[1]:.2f} /s)",
    )


class _Runs:
    """Plays runs on nodes of this host."""

    def __init__(self, folder: Path, engine: str, *, has_ray: bool) -> None:
        self._folder = folder
        self._engine = engine
        self._has_ray = has_ray
        (folder / "task.jsonl").write_text(json.dumps(TASK), encoding="utf-8")
        (folder / AGENT.name).write_bytes(AGENT.read_bytes())

    def play(
        self,
        nodes: int,
        episodes: int,
        at_once: int,
        calls: int,
        wait_s: float,
        answers: Path | None = None,
    ) -> Played:
        """Play a run whose agents wait, and return what it used.

        Args:
            nodes: number of nodes.
            episodes: number of episodes.
            at_once: episodes that each node plays at once.
            calls: of each agent.
            wait_s: before each call, seconds.
            answers: file of the answers of the nodes, which are recorded without Ray, or replace
                the nodes if the file exists.
        """
        arguments = {"wait_s": wait_s, "calls": calls}
        config = {
            "suite": "task.jsonl",
            "agents": [{"agent": f"{AGENT.stem}:WaitingAgent", "arguments": arguments}],
            "engine": self._engine,
            "trials": episodes,
            "concurrency": at_once,
            "on": f"local:{nodes}",
            "wall_time_s": 600,
        }
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        (folder / "config.json").write_text(json.dumps(config))
        out, spent = folder / "run", folder / "spent.json"
        words = [
            str(spent),
            "ray" if self._has_ray and answers is None else str(answers or folder / "answers"),
            "run",
            "--config",
            str(folder / "config.json"),
            "--out",
            str(out),
        ]
        errors = folder / "errors"
        with (
            errors.open("wb") as file,
            subprocess.Popen(
                [sys.executable, "-m", "scripts.bench.size_driver", *words],
                cwd=self._folder,
                env={**os.environ, "PYTHONPATH": os.getcwd()},
                stdout=subprocess.DEVNULL,
                stderr=file,
            ) as process,
        ):
            used = list(_used(process, out / "episodes.jsonl"))
        if process.returncode:
            raise InfraError(f"a run of the benchmark failed: {errors.read_text()[-2000:]}")
        return _read(out, episodes, json.loads(spent.read_bytes()), used)

    def waiting(self, nodes: int) -> Played:
        """Play a run whose agents wait most of the time."""
        episodes = ROUNDS * nodes * CHECKED_AT_ONCE
        return self.play(nodes, episodes, CHECKED_AT_ONCE, FEW_CALLS, CHECKED_WAIT_S)


def _read(
    run: Path,
    episodes: int,
    own: Mapping[str, Any],
    used: Sequence[tuple[int, Mapping[str, float]]],
) -> Played:
    """Return what a finished run used.

    Args:
        run: its folder.
        episodes: number of its episodes.
        own: what the process of the driver measured.
        used: two results of :func:`_by_part`, each with the number of rows; fewer if the run was
            too short.
    """
    printed = [json.loads(path.read_bytes()) for path in run.rglob("*.stdout")]
    if len(printed) != episodes:
        raise InfraError(f"{len(printed)} of {episodes} agents ended")
    seconds = max(each["ended"] for each in printed) - min(each["began"] for each in printed)
    parts_s = _difference(*used) if len(used) == 2 else {"box": 0.0}
    # The prepared process of forked boxes does not count the time of boxes that ended.
    boxes_s = sum(each["processor_s"] for each in printed) / episodes
    return Played(
        {**parts_s, "box": max(parts_s["box"], boxes_s)},
        {part: value / episodes for part, value in own["parts"].items()},
        episodes / seconds,
        own["processor_s"] / episodes,
        episodes / own["seconds"],
    )


def _used(process: subprocess.Popen[bytes], rows: Path) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield the number of rows and the processor time by part, after two numbers of rows."""
    for wanted in (FIRST_ROWS, LAST_ROWS):
        while process.poll() is None:
            lines = rows.read_bytes().count(b"\n") if rows.exists() else 0
            if lines >= wanted:
                yield lines, _by_part(process.pid)
                break
            time.sleep(LOOK_S)
    process.wait()


def _difference(
    first: tuple[int, Mapping[str, float]], last: tuple[int, Mapping[str, float]]
) -> dict[str, float]:
    return {part: (last[1][part] - first[1][part]) / (last[0] - first[0]) for part in PARTS}


def _by_part(driver: int) -> dict[str, float]:
    """Return the processor time of all processes by part, seconds."""
    tree = process_tree(driver)
    used = defaultdict[str, float](float)
    for pid in tree:
        own, ended = processor_s(pid)
        part, part_of_ended = _part(tree, pid, driver)
        used[part] += own
        used[part_of_ended] += ended
    return used


def _part(tree: Mapping[int, int], pid: int, driver: int) -> tuple[str, str]:
    """Return the part of a process, and that of its children that ended."""
    above = pid
    while above in tree and above != driver:
        if is_service(above):
            return "service", "service"
        words = command(above)
        if any(sign in words for sign in SIGNS_OF_NODE):
            return ("node" if pid == above else "box"), "box"
        if "/ray/" in words:
            return "ray", "ray"
        above = tree[above]
    return ("driver" if pid == driver else "scoring"), "scoring"


def _costs_by_part(few: Played, many: Played) -> Iterator[Figure]:
    for part, what in PARTS.items():
        each_ms = (many.parts_s[part] - few.parts_s[part]) / (MANY_CALLS - FEW_CALLS) * 1000
        rest_ms = few.parts_s[part] * 1000 - FEW_CALLS * each_ms
        yield Figure(what, f"{rest_ms:.1f} ms, and {each_ms:.2f} ms per call")
    for part, seconds in few.driver_parts_s.items():
        yield Figure(f"of the driver, {part}", f"{seconds * 1000:.2f} ms")
    during = (value for part, value in few.driver_parts_s.items() if part != SEAL)
    other_s = few.parts_s["driver"] - sum(during)
    yield Figure(
        "of the driver, the rest: threads and the cluster's client", f"{other_s * 1000:.2f} ms"
    )


def _costs(played: Played, wait_s: float) -> Costs:
    parts_s = played.parts_s
    return Costs(
        node_s=sum(parts_s[part] for part in ("box", "service", "node")),
        wait_s=wait_s,
        ray_s=parts_s["ray"],
        scoring_s=parts_s["scoring"],
        driver_s=parts_s["driver"],
    )


def _check(runs: _Runs, costs: Costs, nodes: int) -> Iterator[Figure]:
    played = runs.waiting(nodes)
    episodes = ROUNDS * nodes * CHECKED_AT_ONCE
    cluster = Cluster(nodes, CHECKED_AT_ONCE, os.cpu_count() or 1, one_host=True)
    predicted_per_s = episodes / simulate(costs, cluster, episodes).played_s
    yield Figure(
        f"{nodes} node{'s' if nodes > 1 else ''}, {CHECKED_AT_ONCE} episodes at once on each",
        f"{predicted_per_s:.3f}/s predicted, {played.per_s:.3f}/s measured, "
        f"{played.per_s / predicted_per_s:.2f}×",
    )


def _alone(runs: _Runs, costs: Costs, answers: Path) -> Iterator[Figure]:
    """Yield what the driver does if recorded answers replace the nodes."""
    for at_once in (COSTED_AT_ONCE, ALONE_AT_ONCE):
        alone = runs.play(1, ALONE_EPISODES, at_once, FEW_CALLS, COSTED_WAIT_S, answers)
    yield Figure(
        f"driver with recorded answers, {ALONE_AT_ONCE} episodes at once",
        f"{alone.driver_s * 1000:.2f} ms of processor per episode, "
        f"{costs.driver_s * 1000:.2f} predicted; {alone.answered_per_s:.0f} episodes/s, "
        f"at most {1 / costs.driver_s:.0f} predicted",
    )


def _large(costs: Costs) -> Iterator[Figure]:
    for name, wait_s in LARGE.items():
        of_each = Costs(costs.node_s, wait_s, costs.ray_s, costs.scoring_s, costs.driver_s)
        for nodes in (10, 100, 1000):
            cluster = Cluster(nodes, LARGE_AT_ONCE)
            result = simulate(of_each, cluster, 3 * nodes * LARGE_AT_ONCE, spread=0.5)
            busy = ", ".join(f"{part} {value:.2f}" for part, value in result.busy.items())
            yield Figure(
                f"simulated: waits of {name}, {nodes} nodes", f"{result.per_s:.1f}/s; busy: {busy}"
            )
        first = "driver" if costs.driver_s >= costs.ray_s else "Ray"
        limit = saturating_nodes(of_each, Cluster(1, LARGE_AT_ONCE))
        yield Figure(
            f"waits of {name}: {first} is always busy",
            f"from {limit:.0f} nodes on; then use shards of at most {limit / 2:.0f} nodes: "
            "run --shard K/N, and merge",
        )


def _print(figures: Iterable[Figure]) -> None:
    for figure in figures:
        print(f"{figure.what}: {figure.value}", flush=True)


if __name__ == "__main__":
    main()
