"""Replays over the wire: a sandbox service in a process of its own, a session on its episode's socket."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fumehood.core.errors import InfraError, SpecError
from fumehood.core.evidence import read_evidence
from fumehood.core.trace import Record, verify_chain
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.service_pool import ServicePool
from fumehood.vectors.observed import Watched, observed
from fumehood.vectors.record import Vector
from fumehood.vectors.replay import drive
from fumehood.wire.ports import EpisodeMessage, Opened, Records, SpecRejected
from fumehood_agent.session import Session

WALL_MS = 60_000


class ViaWire:
    """Opens each episode in a service of the pool. Safe to use from several threads."""

    def __init__(self, pool: ServicePool) -> None:
        self._pool = pool

    def play(self, vector: Vector) -> Mapping[str, Any]:
        """Play the vector through a session."""
        case = vector.case()
        spec = PlannedEpisode(vector.vector_id, case, 0, case.task.seed).to_spec(WALL_MS)
        with self._pool.lease() as client:
            messages = client.open_episode(spec)
            socket_dir = _opened(messages)
            try:
                with Session(f"{socket_dir}/grpc.sock") as session:
                    seat = Watched(session)
                    drive(vector, seat)
            finally:
                client.close_episode(spec.episode_id, timed_out=False)
            records = list(_rest(messages))
        verify_chain(records)
        evidence = read_evidence(json.loads(record.event_json) for record in records)
        return observed(case, evidence, seat.observations)


def _opened(messages: Iterator[EpisodeMessage]) -> str:
    match next(messages, None):
        case Opened(seats):
            return seats[0].directory
        case SpecRejected(field, reason):
            raise SpecError(field, reason)
        case other:
            raise InfraError(f"the service opened with {other!r}")


def _rest(messages: Iterator[EpisodeMessage]) -> Iterator[Record]:
    for message in messages:
        match message:
            case Records(records):
                yield from records
            case SpecRejected(field, reason):
                raise SpecError(field, reason)
