"""What the sandbox service needs to know of an episode, and nothing that tells how it is scored."""

from __future__ import annotations

from dataclasses import dataclass

from fumehood.core.conversation import ConversationSpec
from fumehood.core.data_source import DataSource
from fumehood.core.fault_plan import FaultPlan
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.turns import Turn

ONLY_SEAT = "agent"
"""Name of the seat where an episode has but one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatSpec:
    """One participant: its instruction and budget."""

    name: str = ONLY_SEAT
    """Unique within the episode; lower-case letters, digits and ``_``, at most 32 characters."""
    instruction: str
    budget: Budget
    further_turns: tuple[Turn, ...] = ()
    """What the user says next, each time the agent has answered."""
    tools: tuple[str, ...] | None = None
    """Names of the world's tools that this seat has; None for all."""

    def to_json(self) -> JsonObject:
        """Return what a trace tells of the seat, which is not what was said."""
        told: JsonObject = {"name": self.name, "budget": self.budget.to_json()}
        if self.further_turns:
            told["turns"] = 1 + len(self.further_turns)
        if self.tools is not None:
            told["tools"] = list(self.tools)
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSpec:
    """One attempt at one task: world, faults, chance and seats."""

    episode_id: str
    """Unique among open episodes. Never shown to an agent."""
    world: str
    profile: str
    initial_state: JsonObject
    fault_plan: FaultPlan
    seed: int
    seats: tuple[SeatSpec, ...]
    """At least one."""
    data_source: DataSource | None = None
    """What lies around the world; None where it does not look outside."""
    conversation: ConversationSpec | None = None
    """How the seats talk to each other; None where each works for itself."""
