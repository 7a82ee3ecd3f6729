"""A circumstance that any agent has to come through, whatever it does in it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from fumehood.agent_check.scene import Scene, read_record
from fumehood.core.conversation import Turn
from fumehood.core.episode_spec import ONLY_SEAT, EpisodeSpec
from fumehood.core.evidence import Evidence
from fumehood.core.outcome import OutOfBudget
from fumehood.worlds.registry import WORLDS

CONDITIONS_FOLDER = Path(__file__).parent / "robustness_cases"


class Met(Enum):
    """What has to have happened, or nothing was tried. Each says what did not."""

    CALL = "it made no call that was answered"
    FAULT = "it made no call that a fault could meet"
    BUDGET_END = "it ended before its budget did"
    EVERY_TURN = "it ended before the user had said everything"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition(Scene):
    """Where an agent is put, and what it is asked."""

    turns: tuple[Turn, ...]
    """At least one."""
    met: Met

    def spec(self, wall_ms: int) -> EpisodeSpec:
        """Return the episode to open.

        Args:
            wall_ms: for how long it may go on, milliseconds.
        """
        return self.open_for(self.turns, wall_ms)

    def is_met(self, evidence: Evidence) -> bool:
        """Tell whether the agent was in this circumstance at all."""
        match self.met:
            case Met.CALL:
                return any(exchange.output is not None for exchange in evidence.exchanges)
            case Met.FAULT:
                return any(evidence.fire_counts)
            case Met.BUDGET_END:
                return isinstance(evidence.ends.get(ONLY_SEAT), OutOfBudget)
            case Met.EVERY_TURN:
                return len(evidence.turn_answers.get(ONLY_SEAT, ())) == len(self.turns) - 1


@cache
def load_conditions() -> tuple[Condition, ...]:
    """Return every condition there is, the plain one first."""
    return tuple(_read(path) for path in sorted(CONDITIONS_FOLDER.glob("*.json")))


def tools_of_conditions() -> frozenset[str]:
    """Return the names of all tools that there are under conditions."""
    worlds = {condition.world for condition in load_conditions()}
    return frozenset(tool.name for world in worlds for tool in WORLDS.load(world)({}).list_tools())


def _read(path: Path) -> Condition:
    record = read_record(path)
    turns = tuple(
        Turn(turn["instruction"], tuple(turn.get("tools", ()))) for turn in record["turns"]
    )
    name = path.stem.partition("_")[2]
    return Condition(**{**record, "name": name, "turns": turns, "met": Met[record["met"].upper()]})
