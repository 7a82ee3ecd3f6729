"""What the sandbox service needs to know of an episode, and nothing that tells how it is scored."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fumehood.core.conversation import ConversationSpec, Turn
from fumehood.core.errors import SpecError
from fumehood.core.fault_plan import FaultPlan
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget


class DataMode(Enum):
    """Where searches and pages come from; the tools are the same in each."""

    OFFLINE = "offline"
    """A sealed snapshot, and nothing else."""
    LIVE = "live"
    """The network, within limits."""
    RECORD = "record"
    """The network, and all that it answered is kept."""
    REPLAY = "replay"
    """What was kept, and nothing else."""


@dataclass(frozen=True, slots=True)
class DataSource:
    """The same for every episode of a run. Not part of a world's state, nor, but for its kind, of a trace."""

    data_mode: DataMode
    settings: JsonObject
    """Paths on the service's host, limits of fetching and so on, in the terms of the world that looks out."""

    def to_json(self) -> JsonObject:
        """Return both as one object."""
        return {"data_mode": self.data_mode.value, "settings": self.settings}


def data_source_from_json(value: Json) -> DataSource:
    """Return what :meth:`DataSource.to_json` wrote.

    Raises:
        SpecError: it is of another form.
    """
    match value:
        case {"data_mode": str(name), "settings": dict(settings)}:
            if name in {each.value for each in DataMode}:
                return DataSource(DataMode(name), settings)
    raise SpecError(
        "data_source", "needs data_mode (offline, live, record or replay) and settings (an object)"
    )


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
        told: JsonObject = {"name": self.name, "budget": {**self.budget.to_json()}}
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
    harness_mode: str
    initial_state: JsonObject
    fault_plan: FaultPlan
    seed: int
    seats: tuple[SeatSpec, ...]
    """At least one."""
    data_source: DataSource | None = None
    """What lies around the world; None where it does not look outside."""
    conversation: ConversationSpec | None = None
    """How the seats talk to each other; None where each works for itself."""
