"""What a replay saw, in the recorded form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fumehood.core.evidence import Evidence, Exchange
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import OutOfBudget, SeatEnd
from fumehood.core.task import Case
from fumehood.core.tools import FailureKind
from fumehood.scorers.registry import score_evidence
from fumehood_agent.seat import Failure, Reply, Seat, Value


@dataclass(slots=True)
class Watched:
    """A seat that notes what it hands on."""

    seat: Seat
    observations: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def task(self) -> Any:
        """As the seat behind has it."""
        return self.seat.task

    def call(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        """Call, and note what an agent would observe next."""
        reply = self.seat.call(name, arguments)
        self.observations.append(_observation(reply))
        return reply

    def submit(self, answer: str = "") -> bool:
        """As the seat behind."""
        return self.seat.submit(answer)

    def give_up(self, reason: str) -> bool:
        """As the seat behind."""
        return self.seat.give_up(reason)


def observed(
    case: Case, evidence: Evidence, observations: Sequence[Mapping[str, Any]] | None
) -> dict[str, Any]:
    """Return what was seen, under the names of the recorded form.

    Args:
        case: what was played.
        evidence: from its trace.
        observations: what the agent was told; None where nobody on this side of the wall could see it.
    """
    score = score_evidence(case.task, case.gold, evidence)
    seen: dict[str, Any] = {
        "steps": [_step(exchange) for exchange in evidence.exchanges],
        "transcript": [exchange.to_transcript() for exchange in evidence.exchanges],
        "final_state": evidence.final_state,
        "success": score.success,
        "checks": dict(score.checks),
        "metrics": dict(score.metrics),
        "actions": [
            {"tool_name": call.tool_name, "args": dict(call.sent)} for call in evidence.exchanges
        ],
        "end": _end(evidence.ends.get(case.task.seats[0].name)),
    }
    if observations is not None:
        seen["observations"] = list(observations)
    return seen


def _step(exchange: Exchange) -> dict[str, Any]:
    failure = exchange.failure
    return {
        "output": exchange.output,
        "error": None if failure is None else failure.to_json(),
        "terminated": failure is not None and failure.kind is FailureKind.OUT_OF_BUDGET,
    }


def _end(end: SeatEnd | None) -> str:
    match end:
        case OutOfBudget(BudgetKind.STEPS):
            return "max_steps"
        case OutOfBudget():
            return "terminated"
        case _:
            return "no_action"


def _observation(reply: Reply) -> dict[str, Any]:
    left = reply.remaining
    match reply.result:
        case Failure(code, message, details):
            error: Any = {"code": code, "message": message, "details": details}
        case Value():
            error = None
    return {
        "remaining_budget": {
            "steps_left": left.get("steps"),
            "tool_calls_left": left.get("calls"),
            "retries_left": left.get("retries"),
        },
        "last_error": error,
    }
