"""Short constructors of fault plans and episode specifications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.fault_plan import FaultPlan, FaultRule
from fumehood.core.ledger import Budget

ACCOUNTS: dict[str, Any] = {"accounts": {"ax1": {"id": "ax1", "tier": "basic"}}}
"""A state of the crud world."""


def fault_plan(*faults: Mapping[str, Any]) -> FaultPlan:
    """Return a plan of faults in the form of a task record; only ``family`` is required."""
    return tuple(
        FaultRule(
            index,
            fault["family"],
            fault.get("trigger", {}),
            fault.get("severity", "soft"),
            fault.get("payload", {}),
        )
        for index, fault in enumerate(faults)
    )


def episode_spec(
    *faults: Mapping[str, Any],
    episode_id: str = "e1",
    world: str = "crud",
    harness_mode: str = "native",
    state: Mapping[str, Any] = ACCOUNTS,
    seed: int = 1,
    seats: Sequence[SeatSpec] = (),
    **budget: int,
) -> EpisodeSpec:
    """Return an episode with ``seats``, or with one seat that has ``budget``."""
    return EpisodeSpec(
        episode_id=episode_id,
        world=world,
        harness_mode=harness_mode,
        initial_state=dict(state),
        fault_plan=fault_plan(*faults),
        seed=seed,
        seats=tuple(seats) or (SeatSpec(instruction="Do it.", budget=Budget(**budget)),),
    )
