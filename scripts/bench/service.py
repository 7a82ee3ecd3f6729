"""Episodes per second over the sockets of a service, and the memory of an open episode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.task import Case
from fumehood.orchestrator.episode_runner import SessionPlan, attempt_episode
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.service_pool import ServicePool
from fumehood_agent.adapter import work
from fumehood_agent.loading import load_agent
from fumehood_agent.session import Session
from scripts.bench.measure import Figure, timed

OPEN_EPISODES = 200


def episodes_through_service(cases: Sequence[Case], workers: int) -> Iterator[Figure]:
    """Yield the rate of whole episodes when every call goes to a service process."""
    with ServicePool(workers) as pool, ThreadPoolExecutor(2 * workers) as threads:
        seconds = timed(lambda: list(threads.map(lambda case: _play(pool, case), cases)))
    yield Figure(
        f"episodes through the service, {workers} worker{'s' if workers > 1 else ''}",
        f"{len(cases) / seconds:,.0f}/s",
    )


def memory_per_episode(case: Case) -> Iterator[Figure]:
    """Yield the growth of the service's resident memory per open episode."""
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
    attempt_episode(spec, SessionPlan({spec.seats[0].name: _work}), pool)


def _work(session: Session) -> bool:
    work(load_agent("builtin:schema_repair"), session)
    return False
