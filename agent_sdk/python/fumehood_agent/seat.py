"""What an agent sees and does at its seat, as plain data.

Knows nothing about sockets: a :class:`Seat` is a :class:`~fumehood_agent.session.Session` or anything else
that answers the same way, such as tools held in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

JsonObject = dict[str, Any]
"""A JSON object. Its values are ``Any`` because an agent reads what it was told, not what a type says."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool on offer."""

    name: str
    parameters: JsonObject
    """JSON Schema of the arguments; an object schema."""
    description: str = ""


Remaining = dict[str, int]
"""Units left by budget kind, such as ``{"calls": 4, "wall_ms": 60000}``. A kind without a limit is missing.

The README lists the kinds. An agent should ignore kinds that it does not know.
"""


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked."""

    instruction: str
    """The user's last message."""
    tools: tuple[Tool, ...]
    """Those that are there now."""
    remaining: Remaining
    """At the start; each reply says what is left after it."""
    turn: int = 1
    """Which message of the user the instruction is, from 1."""


@dataclass(frozen=True, slots=True)
class Value:
    """The tool's output."""

    output: JsonObject


@dataclass(frozen=True, slots=True)
class Failure:
    """The tool said no: a reply to read and react to, never an exception."""

    code: str
    """For programs, such as ``"not_found"``."""
    message: str
    """The same for people."""
    details: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one call."""

    result: Value | Failure
    remaining: Remaining
    ended: bool = False
    """True when no further call will be carried out."""
    recorded_arguments: JsonObject | None = None
    """The arguments as they were recorded, where that is not what was sent."""


class Seat(Protocol):
    """A place to work from."""

    @property
    def task(self) -> Task:
        """What is asked, and the tools for it; another one after an answer upon which the user said more."""
        ...

    def call(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        """Call the tool ``name``.

        Raises:
            Refused: the call was not let through; nothing happened and nothing was charged.
            Ended: the work had ended before.
        """
        ...

    def submit(self, answer: str = "") -> bool:
        """Answer the user, any text, and return whether it counted.

        Where the user has more to say, there is another ``task`` then; else the work has ended.
        """
        ...

    def give_up(self, reason: str) -> bool:
        """End the work because it cannot or must not be done; return whether it counted."""
        ...
