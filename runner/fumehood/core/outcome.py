"""How an episode ended for a seat: a closed set, each ending with who brought it about."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import BudgetKind


@dataclass(frozen=True, slots=True)
class Finished:
    """The agent submitted an answer, or let its deeds speak."""

    answer: str = ""


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The agent judged that the task cannot or must not be done."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class OutOfBudget:
    """The service admitted no further call."""

    kind: BudgetKind


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The wall time was over before the agent was done."""

    wall_ms: int


@dataclass(frozen=True, slots=True)
class AgentCrashed:
    """The agent's process ended without having submitted."""

    detail: str
    """One line, such as ``exit status 1``."""


class InfraKind(Enum):
    """Which part of the machinery failed."""

    ENGINE = "engine"
    """A box could not be started, watched or removed."""
    SERVICE = "service"
    """The sandbox service vanished, or its trace broke off."""
    MODELS = "models"
    """No model could be asked: its provider failed or refused our key, or a cassette has no such answer."""
    COUNTERPART = "counterpart"
    """A counterpart of the agent, such as a simulated user, ended before its work did."""
    TASK = "task"
    """The world could not go on with the state the task gave it."""
    ORCHESTRATOR = "orchestrator"
    """Whatever else failed on our side."""


@dataclass(frozen=True, slots=True)
class Infra:
    """Our side failed; the episode says nothing about the agent and is never scored."""

    what: InfraKind
    detail: str


SeatEnd = Finished | GaveUp | OutOfBudget | TimedOut
"""Endings that the service itself sees."""

Outcome = SeatEnd | AgentCrashed | Infra


def outcome_name(outcome: Outcome) -> str:
    """Return the outcome in one word, with its kind where it has one, such as ``out_of_budget(steps)``."""
    match outcome:
        case Finished():
            return "finished"
        case GaveUp():
            return "gave_up"
        case OutOfBudget(kind):
            return f"out_of_budget({kind.value})"
        case TimedOut():
            return "timed_out"
        case AgentCrashed():
            return "agent_crashed"
        case Infra(what):
            return f"infra({what.value})"


def outcome_to_json(outcome: Outcome) -> JsonObject:
    """Return the outcome as a JSON object with its name under ``outcome``."""
    match outcome:
        case Finished(answer):
            return {"outcome": "finished", "answer": answer}
        case GaveUp(reason):
            return {"outcome": "gave_up", "reason": reason}
        case OutOfBudget(kind):
            return {"outcome": "out_of_budget", "kind": kind.value}
        case TimedOut(wall_ms):
            return {"outcome": "timed_out", "wall_ms": wall_ms}
        case AgentCrashed(detail):
            return {"outcome": "agent_crashed", "detail": detail}
        case Infra(what, detail):
            return {"outcome": "infra", "kind": what.value, "detail": detail}


def outcome_from_json(value: JsonObject) -> Outcome:
    """Return the outcome that :func:`outcome_to_json` wrote.

    Raises:
        ValueError: there is no such outcome.
    """
    match value:
        case {"outcome": "finished", "answer": str(answer)}:
            return Finished(answer)
        case {"outcome": "gave_up", "reason": str(reason)}:
            return GaveUp(reason)
        case {"outcome": "out_of_budget", "kind": str(kind)}:
            return OutOfBudget(BudgetKind(kind))
        case {"outcome": "timed_out", "wall_ms": int(wall_ms)}:
            return TimedOut(wall_ms)
        case {"outcome": "agent_crashed", "detail": str(detail)}:
            return AgentCrashed(detail)
        case {"outcome": "infra", "kind": str(what), "detail": str(detail)}:
            return Infra(InfraKind(what), detail)
    raise ValueError(f"not an outcome: {value!r}")


class RefusalKind(Enum):
    """Why a message was not let through. Closed; mirrored on the wire."""

    MALFORMED = "malformed"
    """Not one JSON object, or holds NaN, Infinity or a lone surrogate."""
    TOO_LARGE = "too_large"
    """Longer than the limit, in bytes."""
    TOO_DEEP = "too_deep"
    """Nested deeper than the limit, in levels."""
    ENDED = "ended"
    """The seat's work has ended."""
    CALL_ID_REUSED = "call_id_reused"
    """The name of the call stands for a different call already."""
    TOO_MANY_REFUSALS = "too_many_refusals"
    """Too many messages were refused before; the limit is a count."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A message that was not let through; 0 where the kind has no number."""

    kind: RefusalKind
    limit: int = 0
    actual: int = 0


@dataclass(frozen=True, slots=True)
class CallRefused:
    """The wall did not let a message through."""

    seat: str
    refusal: str
    """Kind of refusal, lower case, such as ``too_deep``."""
    limit: int
    actual: int

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {
            "kind": "refused",
            "seat": self.seat,
            "refusal": self.refusal,
            "limit": self.limit,
            "actual": self.actual,
        }
