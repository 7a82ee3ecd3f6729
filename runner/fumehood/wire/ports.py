"""The interfaces that the servers of this package call, in types of the core.

The service implements them. The orchestrator receives the same messages from ``ControlClient``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from fumehood.core.episode import Reply
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.ledger import Amounts
from fumehood.core.outcome import Finished, GaveUp, ModelProblem, Refusal, Stopped
from fumehood.core.tools import ToolSpec
from fumehood.core.trace import ModelExchange, Record


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task as its agent sees it."""

    instruction: str
    """The latest message to the seat."""
    tools: tuple[ToolSpec, ...]
    remaining: Amounts
    """Units left now, of each bounded kind."""
    turn: int = 1
    """Number of this turn of the seat, from 1."""
    asks_confidence: bool = False
    """Whether the agent is asked for the confidence of its submission."""
    ended: bool = False
    """Whether the work of the seat has ended."""


class SeatPort(Protocol):
    """One seat, as its agent reaches it. Safe to use from several threads."""

    def view_task(self) -> TaskView:
        """Return the task with the units left now."""
        ...

    def call(self, tool_name: str, arguments_json: str, call_id: str) -> Reply | Refusal:
        """Execute one call; every argument is untrusted."""
        ...

    def count_refused(self, size_bytes: int) -> None:
        """Count a message that never became a call, such as a malformed one.

        The sockets of the seat close when it has sent too many bytes of refused messages.
        """
        ...

    def report(self, problem: ModelProblem) -> bool:
        """Record a problem with the model; return whether the trace contains it."""
        ...

    def report_permission(self, title: str, answer: str) -> bool:
        """Record the answer to a permission request; return whether the trace contains it.

        Args:
            title: untrusted; cut if it is long.
            answer: untrusted; recorded only if it is one of ``PERMISSION_ANSWERS``.
        """
        ...

    def submit(
        self, end: Finished | GaveUp | Stopped, confidence: float | None = None
    ) -> bool | TaskView | Refusal:
        """End the turn of the seat, give up, or stop.

        Args:
            end: how the turn or the work ends.
            confidence: untrusted; must be from 0 to 1, or None if the agent states none.

        Returns:
            The next task if the user sends another message; otherwise whether this end of the work
            counts.
        """
        ...


@dataclass(frozen=True, slots=True)
class SeatSockets:
    """The directory with the sockets of a seat."""

    name: str
    directory: str
    """Absolute path on the host; contains the sockets of this seat and nothing else."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The sockets are listening."""

    seats: tuple[SeatSockets, ...]


@dataclass(frozen=True, slots=True)
class Records:
    """The next records of the trace, in order."""

    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class SeatReady:
    """A seat of a conversation has the turn for the first time, so its box can be started."""

    name: str


@dataclass(frozen=True, slots=True)
class SeatWorkEnded:
    """The work of a seat has ended, so its box can be stopped."""

    name: str


@dataclass(frozen=True, slots=True)
class SpecRejected:
    """The specification cannot be hosted, or its world cannot continue."""

    field: str
    """Path in the specification."""
    reason: str


GRANTED_MS_MAX = 4 * 60 * 60 * 1000
"""Wall time that an episode gets for its waits for model providers and monitors, at most."""


@dataclass(frozen=True, slots=True)
class TimeGranted:
    """The infrastructure delayed a seat, so its wall time was extended by ``granted_ms``."""

    name: str
    granted_ms: int


EpisodeMessage = (
    Opened | Records | SeatReady | SeatWorkEnded | SpecRejected | ModelExchange | TimeGranted
)

MONITORS_FIELD = "monitors"
"""``SpecRejected.field`` of an episode that ended because a monitor does not work."""
MODELS_FIELD = "models"
"""``SpecRejected.field`` of an episode that ended because no model provider could be reached."""


@dataclass(frozen=True, slots=True)
class ServiceHealth:
    """The state of a service."""

    episodes_open: int
    episodes_closed: int
    resident_bytes: int
    version: str


class EpisodePort(Protocol):
    """An open episode, as the orchestrator that opened it sees it."""

    def messages(self) -> Iterator[EpisodeMessage]:
        """Yield the messages of the episode until it is closed. May be called once.

        When the iterator ends for any reason, the episode ends too.
        """
        ...

    def abandon(self) -> None:
        """End ``messages`` without an end record. Returns at once. Safe to use from any thread."""
        ...


@dataclass(frozen=True, slots=True)
class InlineAgent:
    """A built-in agent that plays inside the service."""

    seat: str
    name: str
    """Name in the SDK's registry of built-in agents."""
    moves_json: str = ""
    """JSON list of the moves that it replays; empty for an agent that decides by itself."""


@dataclass(frozen=True, slots=True)
class PlayedInline:
    """An episode that was played inside the service."""

    records: tuple[Record, ...]
    """The whole trace; empty if the episode was rejected."""
    rejected: SpecRejected | None
    agent_error: str = ""
    """Traceback of the first agent that raised an exception; empty if none did."""
    exit_status: int = 0
    """Exit status that this agent's process would have had; 0 if no agent raised an exception."""
    failed_seat: str = ""
    """The seat of this agent; empty if no agent raised an exception."""


class HostPort(Protocol):
    """The service, as the orchestrator sees it. Safe to use from several threads."""

    def open_episode(
        self, spec: EpisodeSpec, exchanges: Sequence[ModelExchange] = (), *, is_held: bool = False
    ) -> EpisodePort:
        """Open an episode; its sockets are listening when this method returns.

        Args:
            spec: the episode.
            exchanges: recorded model requests with their responses, if models are replayed.
            is_held: messages of agents wait until :meth:`begin_episode`.

        Raises:
            SpecError: the specification cannot be hosted; nothing was opened.
        """
        ...

    def begin_episode(self, episode_id: str) -> None:
        """Begin a held episode; has no effect on any other."""
        ...

    def close_episode(self, episode_id: str, timed_out: bool) -> bool:
        """Close an episode; return False if no such episode was open."""
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
        """Return the state of the service."""
        ...
