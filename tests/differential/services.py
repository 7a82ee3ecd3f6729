"""Plays moves through real services: each seat has a session with the process of its episode."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from fumehood.core.errors import InfraError, SpecError
from fumehood.core.evidence import Evidence, read_evidence
from fumehood.core.outcome import Infra, InfraKind
from fumehood.core.task import Case
from fumehood.core.trace import verify_chain
from fumehood.orchestrator.box_plans import moves_of
from fumehood.orchestrator.episode_runner import SessionPlan, attempt_episode
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.service_pool import ServiceOptions, ServicePool
from fumehood_agent.adapter import work
from fumehood_agent.builtin.oracle import Oracle
from fumehood_agent.session import Session

WALL_MS = 600_000
"""Longer than any episode here, also on a busy machine."""
SERVICES = os.cpu_count() or 1
Played = tuple[Case, Sequence[Mapping[str, Any]]]
"""A task and the moves to play."""


def play_through_services(played: Sequence[Played]) -> Iterator[Evidence]:
    """Yield the evidence of each task's moves.

    Raises:
        InfraError: an episode could not be played.
        SpecError: a service rejected a task.
    """
    worlds = sorted({case.task.world for case, _ in played})
    with (
        ServicePool(SERVICES, ServiceOptions(worlds=worlds)) as pool,
        ThreadPoolExecutor(SERVICES) as threads,
    ):
        yield from threads.map(partial(_play, pool), enumerate(played))


def _play(pool: ServicePool, numbered: tuple[int, Played]) -> Evidence:
    number, (case, moves) = numbered
    task = case.task
    spec = PlannedEpisode(f"trajectory {number}", case, 0, task.seed).to_spec(WALL_MS)
    workers = {
        seat.name: partial(_work, moves_of(seat.name, task.seats[0].name, moves))
        for seat in task.seats
    }
    attempt = attempt_episode(spec, SessionPlan(workers), pool)
    match attempt.infra:
        case Infra(InfraKind.TASK, detail):
            raise SpecError(task.task_id, detail)
        case Infra(_, detail):
            raise InfraError(detail)
    verify_chain(attempt.records)
    return read_evidence(json.loads(record.event_json) for record in attempt.records)


def _work(moves: list[dict[str, Any]], session: Session) -> bool:
    work(Oracle(moves), session)
    return False
