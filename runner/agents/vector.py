"""One small task with a script for an agent, and what has to come of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from runner.core.episode_spec import EpisodeSpec, SeatSpec
from runner.core.fault_plan import FaultRule
from runner.core.json_values import JsonObject
from runner.core.ledger import Budget
from runner.core.turns import Turn

VECTORS_FOLDER = Path(__file__).parent / "vectors"
PROFILE = "native"

Observation = Mapping[str, Any]
"""What an agent tells of one step; its forms are in ``docs/agent_conformance.md``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTurn:
    """What the user says at one time: a script for the agent."""

    steps: Sequence[Mapping[str, Any]]
    tools: tuple[str, ...] = ()
    """Names of the world's tools that come with it and were not there before."""

    @property
    def instruction(self) -> str:
        """The script as the agent gets it."""
        return json.dumps({"steps": self.steps}, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """What an agent is to do, and what it has to observe."""

    name: str
    behaviour: str
    """What it proves, in words."""
    world: str
    initial_state: JsonObject
    fault_plan: Sequence[Mapping[str, Any]] = ()
    budget: Mapping[str, int]
    turns: tuple[ScriptedTurn, ...]
    """At least one."""
    observations: Sequence[Observation]
    """Of all steps of all turns, in order."""
    calls: int
    """Carried out, as the trace tells."""
    outcome: str
    """How the work ends."""

    @property
    def ends_itself(self) -> bool:
        """Whether a script of it says how the work ends, rather than leaving it to the agent."""
        return any(step["do"] in ("submit", "give_up") for turn in self.turns for step in turn.steps)

    def spec(self, wall_ms: int) -> EpisodeSpec:
        """Return the episode to open.

        Args:
            wall_ms: for how long it may go on, milliseconds.
        """
        first, *rest = self.turns
        seat = SeatSpec(
            instruction=first.instruction,
            budget=Budget(**self.budget, wall_ms=wall_ms),
            further_turns=tuple(Turn(turn.instruction, turn.tools) for turn in rest),
        )
        faults = (
            FaultRule(index, rule["fault_type"], rule.get("trigger", {}), payload=rule.get("payload", {}))
            for index, rule in enumerate(self.fault_plan)
        )
        return EpisodeSpec(
            episode_id=self.name,
            world=self.world,
            profile=PROFILE,
            initial_state=self.initial_state,
            fault_plan=tuple(faults),
            seed=1,
            seats=(seat,),
        )


@cache
def load_vectors() -> tuple[Vector, ...]:
    """Return every vector there is, by name."""
    return tuple(_read(path) for path in sorted(VECTORS_FOLDER.glob("*.json")))


def _read(path: Path) -> Vector:
    record = _spelt_out(json.loads(path.read_text(encoding="utf-8")))
    turns = tuple(ScriptedTurn(**{**turn, "tools": tuple(turn.get("tools", ()))}) for turn in record["turns"])
    return Vector(**{**record, "turns": turns})


def _spelt_out(value: Any) -> Any:
    """Return the value with every ``{"repeat": TEXT, "times": N}`` in it as the text it stands for."""
    match value:
        case {"repeat": str(text), "times": int(times), **rest} if not rest:
            return text * times
        case dict():
            return {name: _spelt_out(inner) for name, inner in value.items()}
        case list():
            return [_spelt_out(inner) for inner in value]
    return value
