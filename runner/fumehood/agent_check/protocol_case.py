"""One small task with a script for an agent, and what has to come of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fumehood.agent_check.scene import Scene, read_record
from fumehood.core.conversation import Turn
from fumehood.core.episode_spec import EpisodeSpec

VECTORS_FOLDER = Path(__file__).parent / "protocol_cases"

Observation = Mapping[str, Any]
"""What an agent tells of one step; its forms are in ``docs/agent_conformance.md``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTurn:
    """What the user says at one time: a script for the agent."""

    steps: Sequence[Mapping[str, Any]]
    tools: tuple[str, ...] = ()
    """Names of the world's tools that come with it and were not there before."""

    def said(self) -> Turn:
        """Return it as the agent gets it."""
        return Turn(json.dumps({"steps": self.steps}, ensure_ascii=False), self.tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector(Scene):
    """What an agent is to do, and what it has to observe."""

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
        return any(
            step["do"] in ("submit", "give_up") for turn in self.turns for step in turn.steps
        )

    def spec(self, wall_ms: int) -> EpisodeSpec:
        """Return the episode to open.

        Args:
            wall_ms: for how long it may go on, milliseconds.
        """
        return self.open_for([turn.said() for turn in self.turns], wall_ms)


@cache
def load_vectors() -> tuple[Vector, ...]:
    """Return every vector there is, by name."""
    return tuple(_read(path) for path in sorted(VECTORS_FOLDER.glob("*.json")))


def _read(path: Path) -> Vector:
    record = read_record(path)
    turns = tuple(
        ScriptedTurn(**{**turn, "tools": tuple(turn.get("tools", ()))}) for turn in record["turns"]
    )
    return Vector(**{**record, "turns": turns})
