"""Through the service: episodes a second over its sockets, and what an open episode keeps in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Thread

from fumehood.bench.measure import Figure, timed
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.task import Case
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.service_pool import ServicePool
from fumehood.wire.ports import EpisodeMessage, Opened
from fumehood_agent.adapter import work
from fumehood_agent.loading import load_agent
from fumehood_agent.session import Session

OPEN_EPISODES = 200


def episodes_through_service(cases: Sequence[Case], workers: int) -> Iterator[Figure]:
    """Yield how fast whole episodes go when every call crosses to a service process and is traced."""
    with ServicePool(workers) as pool, ThreadPoolExecutor(2 * workers) as threads:
        seconds = timed(lambda: list(threads.map(lambda case: _play(pool, case), cases)))
    yield Figure(
        f"episodes through the service, {workers} worker{'s' if workers > 1 else ''}",
        f"{len(cases) / seconds:,.0f}/s",
    )


def memory_per_episode(case: Case) -> Iterator[Figure]:
    """Yield what the service's resident memory grows by for each episode it holds open."""
    with ServicePool(1) as pool, ExitStack() as stack:
        client = stack.enter_context(pool.lease())
        before = client.health().resident_bytes
        for number in range(OPEN_EPISODES):
            messages = client.open_episode(_spec(case, number))
            next(messages)
            stack.callback(messages.close)
        grown = client.health().resident_bytes - before
        yield Figure(
            f"service memory per open episode, {OPEN_EPISODES} open",
            f"{grown / OPEN_EPISODES / 1024:,.0f} KiB",
        )


def _spec(case: Case, number: int) -> EpisodeSpec:
    return PlannedEpisode(f"bench{number}", case, number, 0).to_spec(60_000)


def _play(pool: ServicePool, case: Case) -> None:
    spec = PlannedEpisode("bench", case, 0, case.task.seed).to_spec(60_000)
    with pool.lease() as client:
        messages = client.open_episode(spec)
        opened = next(messages)
        assert isinstance(opened, Opened)
        reader = Thread(target=_drain, args=(messages,))
        reader.start()
        with Session(f"{opened.seats[0].directory}/grpc.sock") as session:
            work(load_agent("builtin:schema_repair"), session)
        client.close_episode(spec.episode_id, timed_out=False)
        reader.join()


def _drain(messages: Iterator[EpisodeMessage]) -> None:
    for _ in messages:
        pass
