"""What the servers of this room serve; the rooms above implement it in the core's own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from fumehood.core.episode import Reply
from fumehood.core.episode_spec import EpisodeSpec
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


class SeatPort(Protocol):
    """One seat, as its agent reaches it. Safe to use from several threads."""

    def view_task(self) -> TaskView:
        """Return the task with what is left now."""
        ...

    def call(self, tool_name: str, arguments_json: str, call_id: str) -> Reply | Refusal:
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
class InlineAgent:
    """A built-in agent that plays inside the service."""

    seat: str
    name: str
    """In the SDK's registry of built-in agents."""
    moves_json: str = ""
    """JSON list of the moves that it replays; empty for an agent that decides by itself."""


@dataclass(frozen=True, slots=True)
class PlayedInline:
    """An episode that was played inside the service, from its opening to its end."""

    records: tuple[Record, ...]
    """The whole trace; empty when ``rejected`` says why there is none."""
    rejected: SpecRejected | None
    agent_error: str = ""
    """Traceback of the first agent that raised; empty when none did."""
    exit_status: int = 0
    """Exit status that this agent's process would have had; 0 when none raised."""


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

    def play_inline(self, spec: EpisodeSpec, agents: Sequence[InlineAgent]) -> PlayedInline:
        """Play one whole episode with built-in agents inside the service.

        Args:
            spec: the episode.
            agents: one per seat.

        Raises:
            SpecError: the specification cannot be hosted.
        """
        ...

    def health(self) -> ServiceHealth:
        """Return how the service is."""
        ...
