"""What the process of an episode costs: processor time, memory and threads."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.task import Case
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood_agent.session import Session
from scripts.bench.measure import Figure

EPISODES = 40
CPU_MS_MAX, MEMORY_MIB_MAX, THREADS_MAX = 25.0, 10.0, 10
SEAT_CPU_MS_MAX, SEAT_THREADS_MAX = 2.0, 2


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians over processes, each after the first call of its agent."""

    cpu_ms: float
    memory_mib: float
    """Proportional set size: pages that several processes share are divided among them."""
    threads: float


def cost_of_processes(case: Case) -> Iterator[Figure]:
    """Yield the costs of a process with one seat, and of each further seat."""
    for http, where in ((None, ""), (HttpOffer(), " with HTTP sockets")):
        with ServicePool(1, ServiceOptions(http=http, worlds=[case.task.world])) as pool:
            one = _measure(pool, case, seats=1)
            three = _measure(pool, case, seats=3)
        what = f"process of an episode{where}"
        yield _figure(f"{what}: processor time", one.cpu_ms, "ms", CPU_MS_MAX)
        yield _figure(f"{what}: memory", one.memory_mib, "MiB", MEMORY_MIB_MAX)
        yield _figure(f"{what}: threads", one.threads, "", THREADS_MAX)
        each = (three.cpu_ms - one.cpu_ms) / 2
        yield _figure(f"further seat{where}: processor time", each, "ms", SEAT_CPU_MS_MAX)
        each = (three.threads - one.threads) / 2
        yield _figure(f"further seat{where}: threads", each, "", SEAT_THREADS_MAX)


def _figure(what: str, value: float, unit: str, most: float) -> Figure:
    return Figure(what, f"{value:.1f} {unit}".rstrip(), f"at most {most:g}", value <= most)


def _measure(pool: ServicePool, case: Case, seats: int) -> Cost:
    with pool.lease() as client, ExitStack() as stack:
        processes = []
        for number in range(EPISODES):
            opened = client.open_seats(_spec(case, number, seats))
            stack.callback(opened.messages.close)
            folder = next(iter(opened.directories.values()))
            processes.append(_listener(folder / "grpc.sock"))
            with Session(folder / "grpc.sock") as session:
                session.call("list_accounts", {})
        costs = [_cost(pid) for pid in processes]
    return Cost(
        median(cost.cpu_ms for cost in costs),
        median(cost.memory_mib for cost in costs),
        median(cost.threads for cost in costs),
    )


def _spec(case: Case, number: int, seats: int) -> EpisodeSpec:
    spec = PlannedEpisode(f"bench{seats}", case, number, 0).to_spec(60_000)
    (seat,) = spec.seats
    names = [seat.name, *(f"seat{place}" for place in range(1, seats))]
    return replace(spec, seats=tuple(replace(seat, name=name) for name in names))


def _listener(path: Path) -> int:
    """Return the process that listens on a socket. Source: unix(7), SO_PEERCRED."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid: int = struct.unpack("iII", found)[0]
    return pid


def _cost(pid: int) -> Cost:
    folder = Path(f"/proc/{pid}")
    threads = list((folder / "task").iterdir())
    ran_ns = sum(
        int((thread / "schedstat").read_text(encoding="ascii").split()[0]) for thread in threads
    )
    rollup = (folder / "smaps_rollup").read_text(encoding="ascii").splitlines()
    (pss_kb,) = [int(line.split()[1]) for line in rollup if line.startswith("Pss:")]
    return Cost(ran_ns / 1e6, pss_kb / 1024, len(os.listdir(folder / "task")))
