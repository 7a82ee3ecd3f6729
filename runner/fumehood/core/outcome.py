"""Outcomes of a seat, and refusals of single messages. Both are closed sets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import BudgetKind


@dataclass(frozen=True, slots=True)
class Finished:
    """The agent submitted its last answer, which may be empty."""

    answer: str = ""


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The agent declared that the task cannot or must not be done."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class OutOfBudget:
    """A budget is exhausted, so the service admits no further call."""

    kind: BudgetKind


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The wall time was used up before the agent finished."""

    wall_ms: int


@dataclass(frozen=True, slots=True)
class AgentCrashed:
    """The agent's process ended before it submitted an answer, or a call of the agent left the
    world in a state that cannot be recorded."""

    detail: str
    """One line, such as ``exit status 1``, or ``seat user: exit status 1`` with several seats."""


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


@dataclass(frozen=True, slots=True)
class Stopped:
    """The agent stopped because of a problem with its model. Not a statement about the task."""

    problem: ModelProblem


@dataclass(frozen=True, slots=True)
class EndedByMonitor:
    """A monitor decided to end the episode."""

    monitor: str
    step: str
    """Kind of the step: ``tool`` or ``model``."""


@dataclass(frozen=True, slots=True)
class MonitorFailed:
    """A monitor failed on a step of the agent, although it passes its health check."""

    monitor: str
    step: str
    """Kind of the step: ``tool`` or ``model``."""
    reason: str
    """``deadline``, ``ended``, ``invalid``, ``budget`` or ``model``."""


class InfraKind(Enum):
    """Which part of the infrastructure failed."""

    ENGINE = "engine"
    """A box could not be started, monitored or removed."""
    SERVICE = "service"
    """The service ended, or its trace is incomplete."""
    MODELS = "models"
    """A model request failed: an error of the provider, a rejected key, or a missing entry of a
    cassette."""
    COUNTERPART = "counterpart"
    """The process of a counterpart, such as a simulated user, ended early, and the agent could not
    be the cause."""
    TASK = "task"
    """The world cannot work with the state that the task gave it."""
    MONITOR = "monitor"
    """A monitor failed, and failed its health check too."""
    ORCHESTRATOR = "orchestrator"
    """Any other failure of the infrastructure."""


@dataclass(frozen=True, slots=True)
class Infra:
    """The infrastructure failed. The episode is never scored."""

    kind: InfraKind
    detail: str


SeatEnd = (
    Finished
    | GaveUp
    | Stopped
    | OutOfBudget
    | TimedOut
    | AgentCrashed
    | EndedByMonitor
    | MonitorFailed
)
"""Outcomes that the service observes."""

Outcome = SeatEnd | Infra


def outcome_name(outcome: Outcome) -> str:
    """Return the name of the outcome with its kind, such as ``out_of_budget(steps)``."""
    value = outcome_to_json(outcome)
    kind = value.get("kind", value.get("problem"))
    return f"{value['outcome']}({kind})" if kind else str(value["outcome"])


ROW_CHARACTERS_MAX = 4096
"""Size of a text of an outcome in a row. Readers keep the rows of a whole run in memory."""


def shortened(outcome: Outcome) -> Outcome:
    """Return an outcome whose texts have at most ``ROW_CHARACTERS_MAX`` characters.

    A longer text is cut and ends in ``…``. The trace contains the whole text.
    """
    cut: dict[str, Any] = {
        name: f"{text[: ROW_CHARACTERS_MAX - 1]}…"
        for name in outcome.__slots__
        if isinstance(text := getattr(outcome, name), str) and len(text) > ROW_CHARACTERS_MAX
    }
    return replace(outcome, **cut) if cut else outcome


def outcome_to_json(outcome: Outcome) -> JsonObject:
    """Return the outcome as a JSON object with its name under ``outcome``."""
    value: JsonObject
    match outcome:
        case Finished(answer):
            value = {"outcome": "finished", "answer": answer}
        case GaveUp(reason):
            value = {"outcome": "gave_up", "reason": reason}
        case Stopped(problem):
            value = {"outcome": "stopped", "problem": problem.value}
        case OutOfBudget(kind):
            value = {"outcome": "out_of_budget", "kind": kind.value}
        case TimedOut(wall_ms):
            value = {"outcome": "timed_out", "wall_ms": wall_ms}
        case AgentCrashed(detail):
            value = {"outcome": "agent_crashed", "detail": detail}
        case EndedByMonitor(monitor, step):
            value = {"outcome": "ended_by_monitor", "monitor": monitor, "step": step}
        case MonitorFailed(monitor, step, reason):
            value = {"outcome": "monitor_failed", "monitor": monitor, "step": step}
            value["reason"] = reason
        case Infra(kind, detail):
            value = {"outcome": "infra", "kind": kind.value, "detail": detail}
    return value


def outcome_from_json(value: JsonObject) -> Outcome:
    """Return the outcome that :func:`outcome_to_json` wrote.

    Raises:
        ValueError: the value is not an outcome.
    """
    outcome: Outcome
    match value:
        case {"outcome": "finished", "answer": str(answer)}:
            outcome = Finished(answer)
        case {"outcome": "gave_up", "reason": str(reason)}:
            outcome = GaveUp(reason)
        case {"outcome": "stopped", "problem": str(problem)}:
            outcome = Stopped(ModelProblem(problem))
        case {"outcome": "out_of_budget", "kind": str(kind)}:
            outcome = OutOfBudget(BudgetKind(kind))
        case {"outcome": "timed_out", "wall_ms": int(wall_ms)}:
            outcome = TimedOut(wall_ms)
        case {"outcome": "agent_crashed", "detail": str(detail)}:
            outcome = AgentCrashed(detail)
        case {"outcome": "ended_by_monitor", "monitor": str(monitor), "step": str(step)}:
            outcome = EndedByMonitor(monitor, step)
        case {
            "outcome": "monitor_failed",
            "monitor": str(monitor),
            "step": str(step),
            "reason": str(reason),
        }:
            outcome = MonitorFailed(monitor, step, reason)
        case {"outcome": "infra", "kind": str(kind), "detail": str(detail)}:
            outcome = Infra(InfraKind(kind), detail)
        case _:
            raise ValueError(f"not an outcome: {value!r}")
    return outcome


class RefusalKind(Enum):
    """Why the service refused a message. Mirrored on the wire."""

    MALFORMED = "malformed"
    """Not one JSON object, or contains NaN, Infinity or a lone surrogate."""
    TOO_LARGE = "too_large"
    """Longer than the limit, in bytes."""
    TOO_DEEP = "too_deep"
    """Nested deeper than the limit, in levels."""
    ENDED = "ended"
    """The seat's work has ended."""
    CALL_ID_REUSED = "call_id_reused"
    """A different call has used this call ID before."""
    TOO_MANY_REFUSALS = "too_many_refusals"
    """Too many messages of the seat were refused."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The refusal of a message. Numbers are 0 if the kind has none."""

    kind: RefusalKind
    limit: int = 0
    actual: int = 0


@dataclass(frozen=True, slots=True)
class ConfidenceStated:
    """Event: the submission that follows has a confidence."""

    seat: str
    confidence: float
    """Probability that the task is done correctly, as the agent sees it; 0 to 1."""

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {"kind": "confidence", "seat": self.seat, "confidence": self.confidence}


@dataclass(frozen=True, slots=True)
class CallRefused:
    """Event: the service refused a message. No tool saw it and nothing was charged."""

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
