"""From an episode's evidence to the signs of why it failed: by rule, from typed events, without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from fumehood.core.evidence import Evidence, Exchange
from fumehood.core.json_values import canonical_json
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import (
    AgentCrashed,
    Finished,
    GaveUp,
    Infra,
    OutOfBudget,
    RefusalKind,
    TimedOut,
    outcome_name,
)
from fumehood.core.tools import FailureKind
from fumehood.report.results import Result
from fumehood.report.statistics.failure_labels import Attribution, Label, Sign, attribution_of

LOOP_CALLS = 3
"""So many equal calls with equal answers, one after the other, are a loop."""

UNREADABLE = frozenset(
    {RefusalKind.MALFORMED.value, RefusalKind.TOO_LARGE.value, RefusalKind.TOO_DEEP.value}
)
"""What the wall refuses without having understood it."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a rule may look at."""

    result: Result
    evidence: Evidence | None
    """None where there is no trace."""

    @property
    def calls(self) -> Sequence[Exchange]:
        """All calls of the episode, in order."""
        return self.evidence.exchanges if self.evidence else ()


Rule = Callable[[Case], Iterator[Sign]]


def attribute(result: Result, evidence: Evidence | None) -> Attribution | None:
    """Return why an episode failed; None where it did not fail, or has no verdict."""
    if result.success is not False and not result.row.is_infra:
        return None
    case = Case(result, evidence)
    return attribution_of(tuple(sign for rule in RULES for sign in rule(case)))


def _stopped(case: Case) -> Iterator[Sign]:
    match case.result.row.outcome:
        case Infra(detail=detail) as outcome:
            yield Sign(Label.INFRASTRUCTURE, f"{outcome_name(outcome)}: {detail}", True)
        case TimedOut(wall_ms):
            yield Sign(Label.TIMEOUT, f"not done within {wall_ms / 1000:g} s", True)
        case OutOfBudget(BudgetKind.WALL_MS):
            yield Sign(Label.TIMEOUT, "the wall time was used up", True)
        case OutOfBudget(kind):
            yield Sign(Label.BUDGET, f"no {kind.value} left{_last_failure(case.calls)}", True)
        case AgentCrashed(detail):
            yield Sign(Label.CRASH, detail, True)


def _last_failure(calls: Sequence[Exchange]) -> str:
    failure = calls[-1].failure if calls else None
    code = failure.details.get("original_error_code", failure.code) if failure else None
    return f"; the last call failed with {code}" if code else ""


def _unreadable(case: Case) -> Iterator[Sign]:
    refusals = case.evidence.refusals if case.evidence else ()
    kinds = [kind for kind in refusals if kind in UNREADABLE]
    if kinds:
        told = ", ".join(sorted(set(kinds)))
        yield Sign(Label.PARSING, f"{len(kinds)} messages refused: {told}", not case.calls)


def _invalid(case: Case) -> Iterator[Sign]:
    for at, call in enumerate(case.calls):
        # A call that a fault altered may be invalid through no fault of the agent.
        if call.failure and call.failure.kind is FailureKind.INVALID_CALL and not call.strikes:
            told = f"call {at + 1}: {call.tool_name} failed with {call.failure.code}"
            yield Sign(Label.TOOL_INVOCATION, told, not _answered_later(case.calls, at))


def _loop(case: Case) -> Iterator[Sign]:
    at = 0
    for _, group in groupby(case.calls, key=_exchange_text):
        calls = list(group)
        if len(calls) >= LOOP_CALLS and not any(call.strikes for call in calls):
            told = f"calls {at + 1} to {at + len(calls)} are the same and got the same answer"
            yield Sign(Label.REASONING, told, True)
        at += len(calls)


def _wrong_end(case: Case) -> Iterator[Sign]:
    solvable = case.result.task.solvable
    match case.result.row.outcome:
        case GaveUp() if solvable:
            yield Sign(Label.REASONING, "gave up on a task that can be solved", True)
        case Finished() if solvable is False:
            yield Sign(Label.REASONING, "did not give up a task that cannot be solved", True)
        case Finished() if solvable and not case.calls:
            yield Sign(Label.REASONING, "ended the work without a call", True)
        case Finished() if solvable:
            failed = [name for name, held in case.result.row.score.checks.items() if not held]
            yield Sign(
                Label.REASONING, f"took the task for done; not so: {', '.join(failed)}", True
            )


def _not_recovered(case: Case) -> Iterator[Sign]:
    for at, call in enumerate(case.calls):
        if call.failure and call.strikes and not _answered_later(case.calls, at):
            told = f"call {at + 1}: {call.tool_name} was struck by a fault and never answered after"
            # Only where the task is proven solvable is it the agent's decision that this stayed so.
            label = Label.REASONING if case.result.task.solvable else Label.UNATTRIBUTED
            yield Sign(label, told, True)
            return


RULES: tuple[Rule, ...] = (_stopped, _unreadable, _invalid, _loop, _wrong_end, _not_recovered)


def _answered_later(calls: Sequence[Exchange], at: int) -> bool:
    tool = calls[at].tool_name
    return any(later.tool_name == tool and not later.failure for later in calls[at + 1 :])


def _exchange_text(call: Exchange) -> str:
    answer = call.output if call.failure is None else call.failure.to_json()
    return canonical_json([call.tool_name, dict(call.sent), answer])
