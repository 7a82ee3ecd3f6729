"""Tasks and suites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fumehood.core.conversation import ConversationSpec
from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.fault_plan import FaultPlan
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject

SCRIPT = "script"
"""Name of the built-in counterpart that submits the texts of the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An instruction in a world, with a fault plan and budgets."""

    task_id: str
    """Unique within its suite."""
    world: str
    harness_mode: str
    initial_state: JsonObject
    fault_plan: FaultPlan = ()
    seed: int = 0
    seats: tuple[SeatSpec, ...]
    tags: JsonObject = field(default_factory=dict)
    """Labels for tables, such as ``difficulty``. They have no effect."""
    conversation: ConversationSpec | None = None
    """How the seats take turns; None if each seat works by itself."""
    counterparts: Mapping[str, str] = field(default_factory=dict)
    """By seat, the default agent of a counterpart. The agent under test has all other seats."""
    scripts: Mapping[str, tuple[Mapping[str, Json], ...]] = field(default_factory=dict)
    """By seat, the moves of the counterpart :data:`SCRIPT`, in the form of oracle moves."""
    policy: JsonObject = field(default_factory=dict)
    """Rules, gates, canaries and limits (docs/policies.md); empty if there are none."""

    def spec(self, episode_id: str) -> EpisodeSpec:
        """Return the specification of an episode of this task."""
        return EpisodeSpec(
            episode_id=episode_id,
            world=self.world,
            harness_mode=self.harness_mode,
            initial_state=self.initial_state,
            fault_plan=self.fault_plan,
            seed=self.seed,
            seats=self.seats,
            conversation=self.conversation,
            policy=self.policy,
        )


@dataclass(frozen=True, slots=True)
class Case:
    """A task with its gold."""

    task: Task
    gold: Gold


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Information that is needed to interpret the scores of a suite. It has no effect."""

    licence: str
    """Licence and owner of the tasks."""
    criterion: str
    """Source of the success criteria."""
    scored_on: str
    """What the criteria examine."""


@dataclass(frozen=True, slots=True)
class Suite:
    """An ordered list of tasks."""

    name: str
    cases: tuple[Case, ...]
    snapshot: Path | None = None
    """Path of the snapshot that the tasks name; None if they name none."""
    about: About | None = None
    """None if unknown."""
