"""``make bench-waiting``: many boxed episodes at once, whose agents wait before each call.

It runs ``fumehood run`` twice: with one episode, for the calls on a quiet machine, then with all of
them. Exit status 1 if a call was lost or a goal was missed.
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

from fumehood.core.user_ids import BOX_UIDS
from fumehood.redteam.victim import percentile
from scripts.bench.measure import Figure
from scripts.bench.process_tree import (
    below,
    is_service,
    names,
    process_tree,
    processor_s,
    text,
)

AGENT = Path(__file__).with_name("waiting_agent.py")
QUIET_CALLS, QUIET_WAIT_S = 100, 0.2
RISE_MS_MAX, STARTED_S_MAX = 50, 180
MEMORY_MIB_MAX, SERVICE_MIB_MAX = 16, 6
CALL_S, SPARE_S = 0.25, 20
"""Wall time per call in addition to the wait, and once. An episode has no time for a queue."""
LOOK_S, MEASURE_S_MIN = 1.0, 5.0
TASK = {
    "format": "fumehood.task/1",
    "task_id": "wait",
    "world": "crud",
    "instruction": "Read account a1.",
    "initial_state": {"accounts": {"a1": {"id": "a1", "status": "active"}}},
    "budget": {"steps": 10**9, "calls": 10**9, "retries": 2},
    "criteria": [{"op": "equals", "path": "accounts.a1.status", "value": "active"}],
    "solvable": True,
    "oracle": [{"submit": ""}],
}


@dataclass(frozen=True, slots=True)
class Played:
    """What the agents of one run printed, in seconds on the clock of this machine."""

    began: Sequence[float]
    ended: Sequence[float]
    calls: Sequence[tuple[float, float]]
    """Beginning and end of each call."""
    rows: Sequence[Mapping[str, object]]
    ran_s: float


@dataclass(frozen=True, slots=True)
class Usage:
    """What all processes use while all agents wait."""

    service_mib: float
    boxes_mib: float
    orchestrator_mib: float
    processes: int
    threads: int
    idle_cores: float
    """Processor time, seconds per second."""


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=1000, help="in flight at once")
    parser.add_argument("--calls", type=int, default=150, help="of each agent")
    parser.add_argument("--wait-s", type=float, default=2.0, help="before each call, seconds")
    parser.add_argument("--engine", default="bubblewrap")
    parser.add_argument("--workers", type=int, default=1, help="service processes")
    options = parser.parse_args()
    print(f"load: {' '.join(map(str, os.getloadavg()))}, {os.cpu_count()} processors", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        quiet, _ = _play(Path(folder, "quiet"), options, 1, QUIET_CALLS, QUIET_WAIT_S)
        many, usage = _play(
            Path(folder, "many"), options, options.episodes, options.calls, options.wait_s
        )
    figures = list(_figures(options, quiet, many, usage))
    for figure in figures:
        goal = f"  ({figure.goal}{'' if figure.met else ', MISSED'})" if figure.goal else ""
        print(f"{figure.what}: {figure.value}{goal}")
    print(f"load: {' '.join(map(str, os.getloadavg()))}")
    return int(any(figure.met is False for figure in figures))


def _play(
    folder: Path, options: argparse.Namespace, episodes: int, calls: int, wait_s: float
) -> tuple[Played, Usage | None]:
    folder.mkdir()
    (folder / "task.jsonl").write_text(json.dumps(TASK), encoding="utf-8")
    (folder / AGENT.name).write_bytes(AGENT.read_bytes())
    config = {
        "suite": "task.jsonl",
        "agents": [
            {
                "agent": f"{AGENT.stem}:WaitingAgent",
                "arguments": {"wait_s": wait_s, "calls": calls},
            }
        ],
        "engine": options.engine,
        "trials": episodes,
        "concurrency": episodes,
        "service_workers": options.workers,
        "wall_time_s": calls * (wait_s + CALL_S) + SPARE_S,
    }
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    command = [sys.executable, "-m", "fumehood", "run", "--config", "config.yaml", "--out", "run"]
    started, usage = time.monotonic(), None
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            time.sleep(LOOK_S)
            # A box has a process of the engine and one of the agent, which has its user.
            if usage is None and episodes > 1 and _agents(process.pid) >= episodes:
                usage = _usage(process.pid, wait_s)
    return _read(folder / "run", time.monotonic() - started), usage


def _read(run: Path, ran_s: float) -> Played:
    printed = [json.loads(path.read_bytes()) for path in run.rglob("*.stdout")]
    lines = (run / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
    return Played(
        [each["began"] for each in printed],
        [each["ended"] for each in printed],
        [(before, after) for each in printed for before, after in each["calls"]],
        [json.loads(line) for line in lines],
        ran_s,
    )


def _figures(
    options: argparse.Namespace, quiet: Played, many: Played, usage: Usage | None
) -> Iterator[Figure]:
    expected = options.episodes * options.calls
    lost = expected - len(many.calls)
    outcomes: dict[object, int] = defaultdict(int)
    for row in many.rows:
        outcomes[row["outcome"]] += 1
    yield Figure("outcomes", ", ".join(f"{name} {count}" for name, count in outcomes.items()))
    yield Figure("lost calls", f"{lost} of {expected}", "none", lost == 0)
    last_began, first_ended = max(many.began), min(many.ended)
    started_s = last_began - min(many.began)
    rate = len(many.began) / started_s if started_s else 0.0
    yield Figure(
        "first to last start",
        f"{started_s:.1f} s, {rate:.1f}/s",
        f"at most {STARTED_S_MAX} s",
        started_s <= STARTED_S_MAX,
    )
    at_rest = [(after - before) * 1000 for before, after in quiet.calls]
    beside = [
        (after - before) * 1000
        for before, after in many.calls
        if last_began <= before and after <= first_ended
    ]
    yield _percentiles("a call on a quiet machine", at_rest)
    yield _percentiles("a call while episodes start and end", _ms(many.calls))
    if beside:
        yield _percentiles("a call while all run", beside)
        rise_ms = percentile(beside, 0.99) - percentile(at_rest, 0.99)
        goal = f"at most {RISE_MS_MAX} ms"
        yield Figure("rise of p99", f"{rise_ms:.1f} ms", goal, rise_ms <= RISE_MS_MAX)
    own_s = max(after - before for before, after in zip(many.began, many.ended, strict=True))
    allowed_s = options.calls * (options.wait_s + CALL_S) + SPARE_S
    yield Figure(
        "wall time",
        f"{allowed_s:.0f} s allowed to each, {own_s:.0f} s used by the slowest agent, "
        f"{many.ran_s:.0f} s until the end of the run",
    )
    if usage is None:
        yield Figure("all at once", "never", "yes", False)
        return
    count = options.episodes
    each_mib = (usage.service_mib + usage.boxes_mib + usage.orchestrator_mib) / count
    yield Figure(
        "memory per waiting episode",
        f"{each_mib:.1f} MiB",
        f"at most {MEMORY_MIB_MAX} MiB",
        each_mib <= MEMORY_MIB_MAX,
    )
    yield Figure(
        "of it, service",
        f"{usage.service_mib / count:.1f} MiB",
        f"at most {SERVICE_MIB_MAX} MiB",
        usage.service_mib / count <= SERVICE_MIB_MAX,
    )
    yield Figure(
        "of it, box and orchestrator",
        f"{usage.boxes_mib / count:.1f} and {usage.orchestrator_mib / count:.1f} MiB",
    )
    yield Figure("processes and threads", f"{usage.processes} and {usage.threads}")
    yield Figure("processor time while all wait", f"{usage.idle_cores:.2f} s per second")


def _ms(calls: Sequence[tuple[float, float]]) -> list[float]:
    return [(after - before) * 1000 for before, after in calls]


def _percentiles(what: str, values: list[float]) -> Figure:
    p50, p99 = percentile(values, 0.5), percentile(values, 0.99)
    return Figure(what, f"{p50:.1f} ms p50, {p99:.1f} ms p99, {len(values)} calls")


def _agents(root: int) -> int:
    """Return how many processes of agents run, if root runs the benchmark."""
    return sum(_uid(pid) in BOX_UIDS for pid in process_tree(root))


def _usage(root: int, wait_s: float) -> Usage:
    """Read the memory of all processes. Source: proc(5), smaps_rollup."""
    tree = process_tree(root)
    services = [pid for pid in tree if tree[pid] == root and is_service(pid)]
    of_services = {pid for service in services for pid in below(tree, service)}
    mib, threads = defaultdict[str, float](float), 0
    ran_before, before = _ran_s(tree), time.monotonic()
    time.sleep(max(wait_s, MEASURE_S_MIN))
    idle_cores = (_ran_s(tree) - ran_before) / (time.monotonic() - before)
    for pid in tree:
        part = "service" if pid in of_services else "orchestrator" if pid == root else "boxes"
        mib[part] += _pss_mib(pid)
        threads += len(names(f"/proc/{pid}/task"))
        time.sleep(0.001)  # Let the agents run.
    return Usage(mib["service"], mib["boxes"], mib["orchestrator"], len(tree), threads, idle_cores)


def _uid(pid: int) -> int:
    for line in text(f"/proc/{pid}/status").splitlines():
        if line.startswith("Uid:"):
            return int(line.split()[1])
    return -1


def _pss_mib(pid: int) -> float:
    for line in text(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _ran_s(pids: Iterable[int]) -> float:
    """Return the processor time of processes, seconds."""
    return sum(processor_s(pid)[0] for pid in pids)


if __name__ == "__main__":
    sys.exit(main())
