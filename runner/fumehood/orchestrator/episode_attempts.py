"""Attempts episodes in boxes or inline, with the models of a run."""

from __future__ import annotations

from fumehood.core.encryption import VEILED
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.engines.engine import Engine
from fumehood.orchestrator.episode_runner import (
    Attempt,
    BoxPlan,
    InlinePlan,
    attempt_episode,
    attempt_inline,
)
from fumehood.orchestrator.models import ModelRun
from fumehood.orchestrator.service_pool import ServicePool


class Attempts:
    """Attempts episodes as their plans say. Safe to use from several threads."""

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

    def attempt(self, spec: EpisodeSpec, plan: BoxPlan | InlinePlan) -> Attempt:
        """Attempt one episode; a failure of ours is part of what is returned.

        Raises:
            InputError: no box can be started from what the user named.
        """
        if self._models is not None:
            # For inline plans too: bounds are part of a trace, which does not depend on the engine.
            spec = self._models.bounded(spec)
        if isinstance(plan, InlinePlan):
            return attempt_inline(spec, plan, self._pool)
        if self._models is None:
            return attempt_episode(spec, self._engine, plan, self._pool)
        recorded = self._models.recorded(spec.episode_id)
        attempt = attempt_episode(spec, self._engine, plan, self._pool, recorded)
        # A cassette would hold in plain text what must not be stored.
        if spec.profile != VEILED:
            self._models.keep(spec.episode_id, attempt.exchanges)
        return attempt
