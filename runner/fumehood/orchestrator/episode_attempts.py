"""The two ways to attempt an episode: in a box of its own, or on a lane."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from fumehood.core.encryption import VEILED
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.engines.engine import Engine
from fumehood.orchestrator.episode_runner import Attempt, BoxPlan, attempt_episode
from fumehood.orchestrator.lane import Lanes
from fumehood.orchestrator.model_run import ModelRun
from fumehood.orchestrator.service_pool import ServicePool


class Attempts:
    """Attempts episodes as their plans say. A context manager; safe to use from several threads."""

    def __init__(self, engine: Engine, pool: ServicePool, models: ModelRun | None = None) -> None:
        """Attempt nothing yet.

        Args:
            engine: makes boxes.
            pool: lends services.
            models: what agents may ask of models; None for no models.
        """
        self._models = models
        self._engine = engine
        self._pool = pool
        self._lanes = Lanes(engine, pool)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lanes.close()

    def attempt(self, spec: EpisodeSpec, plan: BoxPlan) -> Attempt:
        """Attempt one episode; a failure of ours is part of what is returned.

        Raises:
            InputError: no box can be started from what the user named.
        """
        if self._models is not None:
            # On a lane too: bounds are part of a trace, and a trace does not show the way.
            spec = self._models.bounded(spec)
        if plan.on_lane:
            return self._lanes.attempt(spec, plan)
        if self._models is None:
            return attempt_episode(spec, self._engine, plan, self._pool)
        recorded = self._models.recorded(spec.episode_id)
        attempt = attempt_episode(spec, self._engine, plan, self._pool, recorded)
        # A cassette would hold in plain text what must not be stored.
        if spec.profile != VEILED:
            self._models.keep(spec.episode_id, attempt.exchanges)
        return attempt
