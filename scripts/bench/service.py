"""Episodes per second over the sockets of a service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from fumehood.core.task import Case
from fumehood.orchestrator.episode_runner import SessionPlan, attempt_episode
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.service_pool import ServicePool
from fumehood_agent.adapter import work
from fumehood_agent.loading import load_agent
from fumehood_agent.session import Session
from scripts.bench.measure import Figure, timed


def episodes_through_service(cases: Sequence[Case], workers: int) -> Iterator[Figure]:
    """Yield the rate of whole episodes when every call goes to a service process."""
    with ServicePool(workers) as pool, ThreadPoolExecutor(2 * workers) as threads:
        seconds = timed(lambda: list(threads.map(lambda case: _play(pool, case), cases)))
    yield Figure(
        f"episodes through the service, {workers} worker{'s' if workers > 1 else ''}",
        f"{len(cases) / seconds:,.0f}/s",
    )


def _play(pool: ServicePool, case: Case) -> None:
    spec = PlannedEpisode("bench", case, 0, case.task.seed).to_spec(60_000)
    attempt_episode(spec, SessionPlan({spec.seats[0].name: _work}), pool)


def _work(session: Session) -> bool:
    work(load_agent("builtin:schema_repair"), session)
    return False
