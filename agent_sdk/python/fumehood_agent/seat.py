"""The data that an agent receives, and the interface through which it acts.

A :class:`Seat` is a :class:`~fumehood_agent.session.Session`, or anything else with the same
methods, such as tools in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

JsonObject = dict[str, Any]
"""A JSON object."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the agent may call."""

    name: str
    parameters: JsonObject
    """JSON Schema of the arguments; an object schema."""
    description: str = ""


Remaining = dict[str, int]
"""Units left by budget kind, such as ``{"calls": 4, "wall_ms": 60000}``.

A kind without a limit is missing.

The README lists the kinds. An agent should ignore kinds that it does not know.
"""


@dataclass(frozen=True, slots=True)
class Task:
    """A task."""

    instruction: str
    """The last message of the user."""
    tools: tuple[Tool, ...]
    """The tools that are available now."""
    remaining: Remaining
    """Units left when the task was fetched; each reply contains the units left after it."""
    turn: int = 1
    """Number of this message of the user, from 1."""
    asks_confidence: bool = False
    """Whether the run asks for the confidence of each submission."""


@dataclass(frozen=True, slots=True)
class Value:
    """The output of a tool."""

    output: JsonObject


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed call. The agent reads it and reacts; it is never an exception."""

    code: str
    """For programs, such as ``"not_found"``."""
    message: str
    """Explanation for a reader."""
    details: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to one call."""

    result: Value | Failure
    remaining: Remaining
    ended: bool = False
    """True if the work has ended, so that no further call is executed."""
    recorded_arguments: JsonObject | None = None
    """The arguments as recorded, if they differ from the arguments that were sent."""


class ModelProblem(Enum):
    """What went wrong between an agent and its model. Mirrored on the wire."""

    REPLY_TRUNCATED = "reply_truncated"
    """The reply reached its token limit."""
    REPLY_UNPARSEABLE = "reply_unparseable"
    """The reply has not the form that the API or the agent's prompt prescribes."""
    ARGUMENTS_UNPARSEABLE = "arguments_unparseable"
    """The arguments of a requested tool call are not a JSON object."""
    CONTEXT_OVERFLOW = "context_overflow"
    """The conversation is longer than the context of the model."""
    TURN_LIMIT = "turn_limit"
    """The agent's own limit of replies is reached."""
    REQUEST_REFUSED = "request_refused"
    """The provider refused a request for another reason."""


class Seat(Protocol):
    """The interface through which an agent works."""

    @property
    def task(self) -> Task:
        """The current task; another object after an answer to which the user replied."""
        ...

    def call(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        """Call the tool ``name``.

        Raises:
            Refused: the service refused the call; nothing was executed or charged.
            Ended: the work had ended before.
        """
        ...

    def submit(self, answer: str = "", confidence: float | None = None) -> bool:
        """Submit an answer, any text; return whether it counts.

        If the user sends another message, ``task`` is the next task; otherwise the work has ended.
        ``confidence`` is the probability that the task is done correctly, 0 to 1.
        """
        ...

    def give_up(self, reason: str, confidence: float | None = None) -> bool:
        """Give up, because the task cannot or must not be done; return whether this counts."""
        ...


class ModelSeat(Seat, Protocol):
    """A seat whose agent reports problems with its model, as the scaffolds do."""

    def stop(self, problem: ModelProblem) -> bool:
        """End the work because of a problem with the model; return whether this counts."""
        ...

    def report(self, problem: ModelProblem) -> None:
        """Record a problem with the model in the trace; the work continues."""
        ...
