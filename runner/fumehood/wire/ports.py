"""What the servers of this room serve; the rooms above implement it in the core's own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from fumehood.core.episode import Reply
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import Finished, GaveUp, Refusal
from fumehood.core.tools import ToolSpec
from fumehood.core.trace import ModelExchange, Record


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task as an agent sees it."""

    instruction: str
    tools: tuple[ToolSpec, ...]
    remaining: Mapping[BudgetKind, int]
    turn: int = 1
    """Which message of the user the instruction is, from 1."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A call that got past the wall."""

    reply: Reply
    remaining: Mapping[BudgetKind, int]
    recorded_arguments: JsonObject | None
    """What an agent's transcript shows instead of what was sent; None where it shows that."""


class SeatPort(Protocol):
    """One seat, as its agent reaches it. Safe to use from several threads."""

    def view_task(self) -> TaskView:
        """Return the task with what is left now."""
        ...

    def call(self, tool_name: str, arguments_json: str, call_id: str) -> Answered | Refusal:
        """Carry out one call; everything given is untrusted."""
        ...

    def submit(self, end: Finished | GaveUp) -> bool | TaskView | Refusal:
        """End the seat's turn.

        Returns:
            What the user says next, or, where the work has ended, whether this ending counted.
        """
        ...


@dataclass(frozen=True, slots=True)
class SeatSockets:
    """Where a seat can be reached."""

    name: str
    directory: str
    """Absolute host folder that holds this seat's sockets and nothing else."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The sockets are listening."""

    seats: tuple[SeatSockets, ...]


@dataclass(frozen=True, slots=True)
class Records:
    """What happened since the last message, in order."""

    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class SeatCalled:
    """A seat of a conversation has the floor for the first time; its box may start."""

    name: str


@dataclass(frozen=True, slots=True)
class SeatWorkEnded:
    """A seat's box may go."""

    name: str


@dataclass(frozen=True, slots=True)
class SpecRejected:
    """The specification cannot be hosted, or its world cannot go on."""

    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class TimeGranted:
    """A seat was kept waiting by our side and has so much more wall time."""

    name: str
    granted_ms: int


EpisodeMessage = (
    Opened | Records | SeatCalled | SeatWorkEnded | SpecRejected | ModelExchange | TimeGranted
)

MODELS_FIELD = "models"
"""Where an episode is unhostable because no model could be asked."""


@dataclass(frozen=True, slots=True)
class ServiceHealth:
    """How the service is."""

    episodes_open: int
    episodes_closed: int
    resident_bytes: int
    version: str


class EpisodePort(Protocol):
    """An open episode, as the orchestrator that opened it listens to it."""

    def messages(self) -> Iterator[EpisodeMessage]:
        """Yield what happens until the episode is closed; when it ends for any reason, so does the episode.

        To be called once.
        """
        ...

    def abandon(self) -> None:
        """Make ``messages`` end where it is, without a seal. Returns at once, in any thread."""
        ...


@dataclass(frozen=True, slots=True)
class Played:
    """An episode that was played on a lane, from its opening to its end."""

    records: tuple[Record, ...]
    """The whole trace; empty when ``unhostable`` says why there is none."""
    unhostable: SpecRejected | None
    agent_gone: bool
    """Whether the agent hung up before the end; then its lane is over."""


@dataclass(frozen=True, slots=True)
class LaneSockets:
    """Where a lane can be reached."""

    control: str
    """Absolute path of the orchestrator's socket."""
    agent_directory: str
    """Absolute host folder that holds the agent's socket and nothing else."""


class LaneEpisodePort(Protocol):
    """An episode that is being played on a lane, by one thread."""

    @property
    def seat(self) -> SeatPort:
        """Its one seat."""
        ...

    def end(self, *, agent_gone: bool, timed_out: bool) -> Played:
        """Let nothing in any more and return what happened; once.

        Args:
            agent_gone: whether the agent hung up before the end.
            timed_out: whether it was stopped because its time is over.
        """
        ...


class HostPort(Protocol):
    """The service, as the orchestrator reaches it. Safe to use from several threads."""

    def open_episode(
        self, spec: EpisodeSpec, exchanges: Sequence[ModelExchange] = ()
    ) -> EpisodePort:
        """Open an episode; its sockets are listening.

        Args:
            spec: the episode.
            exchanges: what models answered before, where they are replayed.

        Raises:
            SpecError: the specification cannot be hosted; nothing was opened.
        """
        ...

    def close_episode(self, episode_id: str, timed_out: bool) -> bool:
        """Close an episode; False when no such episode was open."""
        ...

    def open_lane(self) -> LaneSockets:
        """Open a lane; its sockets are listening."""
        ...

    def health(self) -> ServiceHealth:
        """Return how the service is."""
        ...
