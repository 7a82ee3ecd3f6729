"""What vectors and conditions have in common: a world, what goes wrong in it, and what may be spent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fumehood.core.conversation import Turn
from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.fault_plan import FaultRule
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget

PROFILE = "native"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Where an agent is put."""

    name: str
    behaviour: str
    """What it shows, in words."""
    world: str
    initial_state: JsonObject
    fault_plan: Sequence[Mapping[str, Any]] = ()
    budget: Mapping[str, int]

    def open_for(self, turns: Sequence[Turn], wall_ms: int) -> EpisodeSpec:
        """Return the episode.

        Args:
            turns: what the user says, at least once.
            wall_ms: for how long it may go on, milliseconds.
        """
        first, *rest = turns
        seat = SeatSpec(
            instruction=first.instruction,
            budget=Budget(**self.budget, wall_ms=wall_ms),
            further_turns=tuple(rest),
        )
        faults = (
            FaultRule(
                index, rule["family"], rule.get("trigger", {}), payload=rule.get("payload", {})
            )
            for index, rule in enumerate(self.fault_plan)
        )
        return EpisodeSpec(
            episode_id=self.name,
            world=self.world,
            harness_mode=PROFILE,
            initial_state=self.initial_state,
            fault_plan=tuple(faults),
            seed=1,
            seats=(seat,),
        )


def read_record(path: Path) -> dict[str, Any]:
    """Return the object in a file, with every ``{"repeat": TEXT, "times": N}`` in it as the text it means."""
    record: dict[str, Any] = _spelt_out(json.loads(path.read_text(encoding="utf-8")))
    return record


def _spelt_out(value: Any) -> Any:
    match value:
        case {"repeat": str(text), "times": int(times), **rest} if not rest:
            return text * times
        case dict():
            return {name: _spelt_out(inner) for name, inner in value.items()}
        case list():
            return [_spelt_out(inner) for inner in value]
    return value
