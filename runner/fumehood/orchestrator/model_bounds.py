"""What seats may spend on models where their task does not say: the same in a run and when it is replayed."""

from __future__ import annotations

from dataclasses import replace

from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.orchestrator.models_config import MICROUSD_PER_USD, ModelsConfig


def bounded(spec: EpisodeSpec, config: ModelsConfig) -> EpisodeSpec:
    """Return the episode with the run's bounds for seats whose task states none."""
    return replace(spec, seats=tuple(_bounded(seat, config) for seat in spec.seats))


def _bounded(seat: SeatSpec, config: ModelsConfig) -> SeatSpec:
    budget, given = seat.budget, config.budget
    microusd = None if given.usd is None else round(given.usd * MICROUSD_PER_USD)
    bounds = {"model_calls": given.calls, "model_tokens": given.tokens, "model_microusd": microusd}
    missing = {name: bound for name, bound in bounds.items() if getattr(budget, name) is None}
    return replace(seat, budget=replace(budget, **missing))
