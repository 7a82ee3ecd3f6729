"""What the servers of this room serve; the rooms above implement it in the core's own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from runner.core.chain import Record
from runner.core.episode_spec import EpisodeSpec
from runner.core.json_values import JsonObject
from runner.core.ledger import BudgetKind
from runner.core.outcome import Finished, GaveUp
from runner.core.refusal import Refusal
from runner.core.seat import Reply
from runner.core.tools import ToolSpec


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task as an agent sees it."""

    instruction: str
    tools: tuple[ToolSpec, ...]
    remaining: Mapping[BudgetKind, int]


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

    def submit(self, end: Finished | GaveUp) -> bool | Refusal:
        """End the seat's work; True when this ending counted."""
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
class SeatWorkEnded:
    """A seat's box may go."""

    name: str


@dataclass(frozen=True, slots=True)
class Unhostable:
    """The specification cannot be hosted, or its world cannot go on."""

    field: str
    reason: str


EpisodeMessage = Opened | Records | SeatWorkEnded | Unhostable


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


class HostPort(Protocol):
    """The service, as the orchestrator reaches it. Safe to use from several threads."""

    def open_episode(self, spec: EpisodeSpec) -> EpisodePort:
        """Open an episode; its sockets are listening.

        Raises:
            SpecError: the specification cannot be hosted; nothing was opened.
        """
        ...

    def close_episode(self, episode_id: str, timed_out: bool) -> bool:
        """Close an episode; False when no such episode was open."""
        ...

    def health(self) -> ServiceHealth:
        """Return how the service is."""
        ...
