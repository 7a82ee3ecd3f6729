"""Replays inside a box: the recorded calls are made by an agent in a container, on its episode's socket."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from fumehood.core.errors import InfraError, SpecError
from fumehood.core.evidence import read_evidence
from fumehood.core.outcome import Infra, InfraKind
from fumehood.engines.engine import AgentKind, AgentSource, Engine, Image, Limits, Mount
from fumehood.engines.ownership import owner_labels
from fumehood.engines.registry import choose_engine
from fumehood.orchestrator.episode_runner import BoxPlan, attempt_episode
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.service_pool import ServicePool
from fumehood.records.row import file_name
from fumehood.vectors.observed import observed
from fumehood.vectors.record import Vector

WALL_MS = 60_000
CALLS_INSIDE = "/agent-data/calls.json"


class ViaBox:
    """Starts one box a vector. Safe to use from several threads.

    What an agent is told is seen only inside, so observations are left out of the comparison here: replay
    over the wire to compare them.
    """

    def __init__(self, engine: Engine, pool: ServicePool, scripts: Path) -> None:
        self._engine = engine
        self._pool = pool
        self._scripts = scripts
        self._images: dict[str, Image] = {}
        self._lock = Lock()

    @classmethod
    @contextmanager
    def on(cls, engine: str, pool: ServicePool) -> Iterator[ViaBox]:
        """Make boxes with the engine called ``engine``.

        Raises:
            InputError: it is not ready.
        """
        chosen = choose_engine(engine)
        try:
            with tempfile.TemporaryDirectory(prefix="") as scripts:
                Path(scripts).chmod(0o755)
                yield cls(chosen.engine, pool, Path(scripts))
        finally:
            chosen.engine.close()

    def play(self, vector: Vector) -> Mapping[str, Any]:
        """Play the vector in a box of its own."""
        case = vector.case()
        spec = PlannedEpisode(vector.vector_id, case, 0, case.task.seed).to_spec(WALL_MS)
        attempt = attempt_episode(spec, self._engine, self._plan(vector), self._pool)
        match attempt.infra:
            case Infra(InfraKind.TASK, detail):
                raise SpecError("task", detail)
            case Infra(_, detail):
                raise InfraError(detail)
        evidence = read_evidence(json.loads(record.event_json) for record in attempt.records)
        return observed(case, evidence, None)

    def _plan(self, vector: Vector) -> BoxPlan:
        image = self._image(vector.agent or "oracle")
        labels = owner_labels("vectors")
        if vector.agent is not None:
            return BoxPlan(image=image, limits=Limits(), labels=labels)
        script = self._scripts / f"{file_name(vector.vector_id)}.json"
        script.write_text(json.dumps([*vector.moves, {"submit": ""}]), encoding="ascii")
        script.chmod(0o644)
        return BoxPlan(
            image=image,
            limits=Limits(),
            arguments=("--calls", CALLS_INSIDE),
            mounts=(Mount(script, CALLS_INSIDE),),
            labels=labels,
        )

    def _image(self, agent: str) -> Image:
        with self._lock:
            if agent not in self._images:
                self._images[agent] = self._engine.prepare(AgentSource(AgentKind.BUILTIN, agent))
            return self._images[agent]
