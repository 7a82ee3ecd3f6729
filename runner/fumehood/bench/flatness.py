"""``make flatness``: what one service keeps after very many episodes, which should be nothing.

Exit status 1 where memory or descriptors grew after the first tenth of the episodes, in which caches fill.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.table import Table

from fumehood.bench.workload import workload
from fumehood.core.errors import InfraError
from fumehood.core.task import Case
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.service_pool import ServicePool
from fumehood.wire.control_client import ControlClient
from fumehood.wire.ports import Opened, Records
from fumehood_agent.adapter import work
from fumehood_agent.loading import load_agent
from fumehood_agent.session import Session

LOOKS = 10
AT_ONCE = 4
GROWTH_MAX = 0.05
"""Of resident memory between the first look and the last; the allocator's own unrest is below that."""


@dataclass(frozen=True, slots=True)
class Look:
    """What the service holds at one moment, with no episode open."""

    episodes: int
    """Closed so far."""
    resident_kb: int
    descriptors: int
    threads: int
    sockets: int
    """Files and folders below the service's own folder."""


def main() -> int:
    """Play, look, print, and return the exit status."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--episodes", type=int, default=10_000, help="through one service, a multiple of 10"
    )
    given = parser.parse_args()
    cases = workload(None)
    looks = []
    with ServicePool(1) as pool:
        for look in watch(pool, cases, given.episodes):
            looks.append(look)
            print(
                f"{look.episodes} episodes: {look.resident_kb / 1024:.1f} MiB",
                file=sys.stderr,
                flush=True,
            )
    Console().print(_table(looks))
    first, last = looks[0], looks[-1]
    grown = last.resident_kb / first.resident_kb - 1
    print(
        f"after the first {first.episodes}: resident memory {grown:+.1%}, "
        f"descriptors {last.descriptors - first.descriptors:+d}, threads {last.threads - first.threads:+d}, "
        f"files {last.sockets - first.sockets:+d}"
    )
    is_flat = (
        grown <= GROWTH_MAX
        and last.descriptors <= first.descriptors
        and last.sockets <= first.sockets
    )
    return 0 if is_flat else 1


def watch(pool: ServicePool, cases: Sequence[Case], episodes: int) -> Iterator[Look]:
    """Play ``episodes`` through the one service of ``pool`` and yield ``LOOKS`` looks at it.

    Raises:
        InfraError: an episode was lost.
    """
    (worker,) = pool.workers()
    numbers = iter(range(episodes))
    with pool.lease() as client, ThreadPoolExecutor(AT_ONCE) as threads:
        for _ in range(LOOKS):
            some = list(islice(numbers, episodes // LOOKS))
            list(
                threads.map(lambda number: _play(client, cases[number % len(cases)], number), some)
            )
            yield _look(worker.pid, client)


def _play(client: ControlClient, case: Case, number: int) -> None:
    spec = PlannedEpisode("flat", case, number, case.task.seed).to_spec(60_000)
    messages = client.open_episode(spec)
    opened = next(messages)
    if not isinstance(opened, Opened):
        raise InfraError(f"the service opened with {opened!r}")
    with Session(f"{opened.seats[0].directory}/grpc.sock") as session:
        work(load_agent("builtin:policy_aware"), session)
    client.close_episode(spec.episode_id, timed_out=False)
    records = [
        record for message in messages if isinstance(message, Records) for record in message.records
    ]
    if '"sealed"' not in records[-1].event_json:
        raise InfraError("an episode was not sealed")


def _look(pid: int, client: ControlClient) -> Look:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    fields = dict(line.split(":", 1) for line in status.splitlines())
    folder = Path(os.readlink(f"/proc/{pid}/cwd"))
    return Look(
        episodes=client.health().episodes_closed,
        resident_kb=int(fields["VmRSS"].split()[0]),
        descriptors=len(os.listdir(f"/proc/{pid}/fd")),
        threads=int(fields["Threads"]),
        sockets=_files(pid, folder),
    )


def _files(pid: int, folder: Path) -> int:
    command = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
    own = folder / command[command.index("fumehood.service") + 1]
    return sum(1 for _ in own.rglob("*"))


def _table(looks: Sequence[Look]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("episodes", "resident MiB", "descriptors", "threads", "files"):
        table.add_column(column, justify="right")
    for look in looks:
        table.add_row(
            f"{look.episodes:,}",
            f"{look.resident_kb / 1024:.1f}",
            str(look.descriptors),
            str(look.threads),
            str(look.sockets),
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
