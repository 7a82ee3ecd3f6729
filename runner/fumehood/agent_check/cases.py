"""The cases of the agent check: protocol cases with a script, and robustness cases for any
agent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from fumehood.core.conversation import Turn
from fumehood.core.episode_spec import ONLY_SEAT, EpisodeSpec, SeatSpec
from fumehood.core.evidence import Evidence
from fumehood.core.fault_plan import FaultRule
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.outcome import OutOfBudget
from fumehood.worlds.registry import WORLDS

PROTOCOL_FOLDER = Path(__file__).parent / "protocol_cases"
ROBUSTNESS_FOLDER = Path(__file__).parent / "robustness_cases"
MODE = "native"

Observation = Mapping[str, Any]
"""An agent's report of one step; ``protocol_cases/README.md`` lists the forms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCase:
    """The parts that both kinds of cases share: world, faults and budget."""

    name: str
    behaviour: str
    """The tested behaviour, in words."""
    world: str
    initial_state: JsonObject
    fault_plan: Sequence[Mapping[str, Any]] = ()
    budget: Mapping[str, int]

    def episode(self, turns: Sequence[Turn], wall_ms: int) -> EpisodeSpec:
        """Return the episode of the case, with at least one turn of the user."""
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
            harness_mode=MODE,
            initial_state=self.initial_state,
            fault_plan=tuple(faults),
            seed=1,
            seats=(seat,),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTurn:
    """A turn of the user whose instruction is a script for the agent."""

    steps: Sequence[Mapping[str, Any]]
    tools: tuple[str, ...] = ()
    """Names of the world's tools that become available with this turn."""

    def turn(self) -> Turn:
        """Return the turn as the agent receives it."""
        return Turn(json.dumps({"steps": self.steps}, ensure_ascii=False), self.tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolCase(CheckCase):
    """A script for an agent, and the observations that it must report."""

    turns: tuple[ScriptedTurn, ...]
    """At least one."""
    observations: Sequence[Observation]
    """Of all steps of all turns, in order."""
    calls: int
    """Number of executed calls in the trace."""
    outcome: str
    """Outcome of the episode."""

    @property
    def ends_itself(self) -> bool:
        """Whether the script ends the episode. Otherwise the agent submits its observations."""
        return any(
            step["do"] in ("submit", "give_up") for turn in self.turns for step in turn.steps
        )

    def spec(self, wall_ms: int) -> EpisodeSpec:
        """Return the episode to open."""
        return self.episode([turn.turn() for turn in self.turns], wall_ms)


class Requirement(Enum):
    """The event without which a case tested nothing. The value states what is missing."""

    CALL = "no call of the agent was answered"
    FAULT = "no call of the agent reached a fault"
    BUDGET_END = "the agent ended before its budget"
    EVERY_TURN = "the agent ended before the user's last turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustnessCase(CheckCase):
    """A situation that any agent must handle."""

    turns: tuple[Turn, ...]
    """At least one."""
    requires: Requirement

    def spec(self, wall_ms: int) -> EpisodeSpec:
        """Return the episode to open."""
        return self.episode(self.turns, wall_ms)

    def is_reached(self, evidence: Evidence) -> bool:
        """Return whether the required event occurred."""
        match self.requires:
            case Requirement.CALL:
                return any(call.output is not None for call in evidence.calls)
            case Requirement.FAULT:
                return any(evidence.fire_counts)
            case Requirement.BUDGET_END:
                return isinstance(evidence.ends.get(ONLY_SEAT), OutOfBudget)
            case Requirement.EVERY_TURN:
                return len(evidence.turn_answers.get(ONLY_SEAT, ())) == len(self.turns) - 1


@cache
def load_protocol_cases() -> tuple[ProtocolCase, ...]:
    """Return all protocol cases, sorted by name."""
    return tuple(_read_protocol_case(path) for path in sorted(PROTOCOL_FOLDER.glob("*.json")))


@cache
def load_robustness_cases() -> tuple[RobustnessCase, ...]:
    """Return all robustness cases in the order of their numbers."""
    return tuple(_read_robustness_case(path) for path in sorted(ROBUSTNESS_FOLDER.glob("*.json")))


def robustness_tools() -> frozenset[str]:
    """Return the names of all tools in the worlds of robustness cases."""
    worlds = {case.world for case in load_robustness_cases()}
    return frozenset(tool.name for world in worlds for tool in WORLDS.load(world)({}).list_tools())


def read_case(path: Path) -> dict[str, Any]:
    """Return the object in a file; each ``{"repeat": TEXT, "times": N}`` becomes the repeated
    text."""
    case: dict[str, Any] = _expand(json.loads(path.read_text(encoding="utf-8")))
    return case


def _read_protocol_case(path: Path) -> ProtocolCase:
    case = read_case(path)
    turns = tuple(
        ScriptedTurn(**{**turn, "tools": tuple(turn.get("tools", ()))}) for turn in case["turns"]
    )
    return ProtocolCase(**{**case, "turns": turns})


def _read_robustness_case(path: Path) -> RobustnessCase:
    case = read_case(path)
    turns = tuple(Turn(turn["instruction"], tuple(turn.get("tools", ()))) for turn in case["turns"])
    name = path.stem.partition("_")[2]
    requires = Requirement[case["requires"].upper()]
    return RobustnessCase(**{**case, "name": name, "turns": turns, "requires": requires})


def _expand(value: Any) -> Any:
    match value:
        case {"repeat": str(text), "times": int(times), **rest} if not rest:
            return text * times
        case dict():
            return {name: _expand(inner) for name, inner in value.items()}
        case list():
            return [_expand(inner) for inner in value]
    return value
