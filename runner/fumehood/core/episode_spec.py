"""The specification of an episode for the service. It contains nothing about scoring."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from fumehood.core.conversation import ConversationSpec, Turn
from fumehood.core.errors import SpecError
from fumehood.core.fault_plan import FaultPlan
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget


class DataMode(Enum):
    """Where searches and pages come from. The tools are the same in all modes."""

    OFFLINE = "offline"
    """A snapshot only."""
    LIVE = "live"
    """The network, with limits."""
    RECORD = "record"
    """The network; all responses are recorded."""
    REPLAY = "replay"
    """Recorded responses only."""


@dataclass(frozen=True, slots=True)
class DataSource:
    """External data of a world, equal for all episodes of a run. A trace contains only the mode."""

    data_mode: DataMode
    settings: JsonObject
    """Settings of the world, such as paths on the host of the service and limits for fetching."""

    def to_json(self) -> JsonObject:
        """Return both as one object."""
        return {"data_mode": self.data_mode.value, "settings": self.settings}


def data_source_from_json(value: Json) -> DataSource:
    """Return what :meth:`DataSource.to_json` wrote.

    Raises:
        SpecError: the value has another form.
    """
    match value:
        case {"data_mode": str(name), "settings": dict(settings)}:
            if name in {mode.value for mode in DataMode}:
                return DataSource(DataMode(name), settings)
    raise SpecError(
        "data_source", "needs data_mode (offline, live, record or replay) and settings (an object)"
    )


ONLY_SEAT = "agent"
"""Name of the seat of an episode with one seat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatSpec:
    """One participant: its instruction and budget."""

    name: str = ONLY_SEAT
    """Unique within the episode; lower-case letters, digits and ``_``, at most 32 characters."""
    instruction: str
    budget: Budget
    further_turns: tuple[Turn, ...] = ()
    """Further messages of the user, one after each answer."""
    tools: tuple[str, ...] | None = None
    """Names of the tools of this seat; None for all tools of the world."""
    asks_confidence: bool = False
    """Whether the agent is asked for the confidence of its submission."""
    prompt_variant: int = 0
    """Number of the variant of the instruction, from 1; 0 for the instruction of the task."""

    def to_json(self) -> JsonObject:
        """Return the parts that a trace contains. Messages are not among them."""
        parts: JsonObject = {"name": self.name, "budget": {**self.budget.to_json()}}
        if self.further_turns:
            parts["turns"] = 1 + len(self.further_turns)
        if self.tools is not None:
            parts["tools"] = list(self.tools)
        if self.asks_confidence:
            parts["asks_confidence"] = True
        if self.prompt_variant:
            parts["prompt_variant"] = self.prompt_variant
        return parts


TokensBeforeCall = tuple[str, int, int]
"""A seat, the number of its next call, and the tokens of its model requests before this call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSpec:
    """One attempt at one task: world, faults, seed and seats."""

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
    """External data of the world; None for a world that needs none."""
    conversation: ConversationSpec | None = None
    """How the seats take turns; None if each seat works by itself."""
    policy: JsonObject = field(default_factory=dict)
    """Rules, gates, canaries and limits (docs/policies.md); empty if there are none."""
    monitors: tuple[str, ...] = ()
    """Names of the monitors of the steps, in the order in which they are asked."""
    recorded_decisions: tuple[JsonObject, ...] | None = None
    """In a replay: the events of the monitors, which are not asked; None asks them."""
    recorded_tokens: tuple[TokensBeforeCall, ...] = ()
    """In a replay: the tokens of the models, which are not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorSpec:
    """A monitor of a run. The processes of episodes get only its name."""

    name: str
    kind: str
    """``rules``, ``python``, ``model`` or ``person``."""
    settings: JsonObject
    """Of its kind, such as the rules or the source of the class."""
    deadline_ms: int
    """Time for one decision, milliseconds."""

    def to_json(self) -> JsonObject:
        """Return the fields."""
        return {
            "name": self.name,
            "kind": self.kind,
            "settings": self.settings,
            "deadline_ms": self.deadline_ms,
        }


def monitor_spec_from_json(value: Json) -> MonitorSpec:
    """Return what :meth:`MonitorSpec.to_json` wrote.

    Raises:
        ValueError: the value has another form.
    """
    match value:
        case {
            "name": str(name),
            "kind": str(kind),
            "settings": dict(settings),
            "deadline_ms": int(deadline_ms),
        }:
            return MonitorSpec(name=name, kind=kind, settings=settings, deadline_ms=deadline_ms)
    raise ValueError("not a monitor")
