"""Assigns failure labels to failed episodes, by rule and from typed events, without a model.

Six labels come from "A Unified Framework for the Evaluation of LLM Agentic Capabilities" (arXiv
2605.27898). Three are added because a trace shows them: a crash, an infrastructure failure, and
"unattributed".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

from fumehood.core.evidence import AnsweredCall, Evidence
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


class Level(Enum):
    """The level of a failure."""

    DECISION = "decision"
    """The agent chose wrong actions."""
    EXECUTION = "execution"
    """The agent was stopped."""
    UNKNOWN = "unknown"


class Label(Enum):
    """A kind of failure, in the order of preference as primary label."""

    INFRASTRUCTURE = "infrastructure"
    """Infrastructure failure; not caused by the agent."""
    TIMEOUT = "timeout"
    """The wall time ended."""
    BUDGET = "budget"
    """Steps, calls or retries were used up before the agent finished."""
    CONTEXT_OVERFLOW = "context_overflow"
    """The context of a model was full. No event shows this yet, so no rule assigns it."""
    CRASH = "crash"
    """The process of the agent ended without a submission."""
    PARSING = "parsing"
    """The service could not parse the messages of the agent."""
    TOOL_INVOCATION = "tool_invocation"
    """A call was invalid, and no fault had altered it."""
    REASONING = "reasoning"
    """Calls and messages were valid, but the actions were wrong or missing."""
    UNATTRIBUTED = "unattributed"
    """No rule applies."""


LEVELS = {
    Label.INFRASTRUCTURE: Level.EXECUTION,
    Label.TIMEOUT: Level.EXECUTION,
    Label.BUDGET: Level.EXECUTION,
    Label.CONTEXT_OVERFLOW: Level.EXECUTION,
    Label.CRASH: Level.EXECUTION,
    Label.PARSING: Level.DECISION,
    Label.TOOL_INVOCATION: Level.DECISION,
    Label.REASONING: Level.DECISION,
    Label.UNATTRIBUTED: Level.UNKNOWN,
}


TITLES = {
    Label.INFRASTRUCTURE: "Infrastructure",
    Label.TIMEOUT: "Timeout",
    Label.BUDGET: "Out of budget",
    Label.CONTEXT_OVERFLOW: "Context overflow",
    Label.CRASH: "Crash",
    Label.PARSING: "Parsing",
    Label.TOOL_INVOCATION: "Tool invocation",
    Label.REASONING: "Reasoning",
    Label.UNATTRIBUTED: "Unattributed",
}
"""Display names."""


@dataclass(frozen=True, slots=True)
class Sign:
    """One observation in the evidence that supports a label."""

    label: Label
    description: str
    decisive: bool
    """False if the agent recovered from it, so that it is not the cause by itself."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """Why one episode failed."""

    primary: Label
    secondary: tuple[Label, ...]
    """Other supported labels, each once, in the order of the enum."""
    signs: tuple[Sign, ...]


def attribution_of(signs: tuple[Sign, ...]) -> Attribution:
    """Choose the primary label: execution before decision, and both before unattributed."""
    supported = [sign for sign in signs if sign.label is not Label.UNATTRIBUTED]
    decisive = {sign.label for sign in supported if sign.decisive}
    primary = next((label for label in Label if label in decisive), Label.UNATTRIBUTED)
    others = {sign.label for sign in supported} - {primary}
    return Attribution(primary, tuple(label for label in Label if label in others), signs)


LOOP_CALLS = 3
"""Number of consecutive equal calls with equal results that are a loop."""


UNREADABLE = frozenset(
    {RefusalKind.MALFORMED.value, RefusalKind.TOO_LARGE.value, RefusalKind.TOO_DEEP.value}
)
"""Messages that the service refuses without parsing them."""


@dataclass(frozen=True, slots=True)
class FailedEpisode:
    """The input of a rule."""

    result: Result
    evidence: Evidence | None
    """None if there is no trace."""

    @property
    def calls(self) -> Sequence[AnsweredCall]:
        """All calls of the episode, in order."""
        return self.evidence.calls if self.evidence else ()


Rule = Callable[[FailedEpisode], Iterator[Sign]]


def attribute(result: Result, evidence: Evidence | None) -> Attribution | None:
    """Return why an episode failed; None if it succeeded or is ungraded."""
    if result.success is not False and not result.row.is_infra:
        return None
    episode = FailedEpisode(result, evidence)
    return attribution_of(tuple(sign for rule in RULES for sign in rule(episode)))


def _stopped(episode: FailedEpisode) -> Iterator[Sign]:
    match episode.result.row.outcome:
        case Infra(detail=detail) as outcome:
            yield Sign(Label.INFRASTRUCTURE, f"{outcome_name(outcome)}: {detail}", True)
        case TimedOut(wall_ms):
            yield Sign(Label.TIMEOUT, f"not finished within {wall_ms / 1000:g} s", True)
        case OutOfBudget(BudgetKind.WALL_MS):
            yield Sign(Label.TIMEOUT, "the wall time was used up", True)
        case OutOfBudget(kind):
            yield Sign(Label.BUDGET, f"no {kind.value} left{_last_failure(episode.calls)}", True)
        case AgentCrashed(detail):
            yield Sign(Label.CRASH, detail, True)


def _last_failure(calls: Sequence[AnsweredCall]) -> str:
    failure = calls[-1].failure if calls else None
    code = failure.details.get("original_error_code", failure.code) if failure else None
    return f"; the last call failed with {code}" if code else ""


def _unreadable(episode: FailedEpisode) -> Iterator[Sign]:
    refusals = episode.evidence.refusals if episode.evidence else ()
    kinds = [kind for kind in refusals if kind in UNREADABLE]
    if kinds:
        names = ", ".join(sorted(set(kinds)))
        yield Sign(Label.PARSING, f"{len(kinds)} messages refused: {names}", not episode.calls)


def _invalid(episode: FailedEpisode) -> Iterator[Sign]:
    for index, call in enumerate(episode.calls):
        # If a fault altered the call, the agent did not cause its invalidity.
        if call.failure and call.failure.kind is FailureKind.INVALID_CALL and not call.fired_rules:
            text = f"call {index + 1}: {call.tool_name} failed with {call.failure.code}"
            yield Sign(Label.TOOL_INVOCATION, text, not _answered_later(episode.calls, index))


def _loop(episode: FailedEpisode) -> Iterator[Sign]:
    start = 0
    for _, group in groupby(episode.calls, key=_call_text):
        calls = list(group)
        if len(calls) >= LOOP_CALLS and not any(call.fired_rules for call in calls):
            text = f"calls {start + 1} to {start + len(calls)} are equal and had equal results"
            yield Sign(Label.REASONING, text, True)
        start += len(calls)


def _wrong_end(episode: FailedEpisode) -> Iterator[Sign]:
    solvable = episode.result.task.solvable
    match episode.result.row.outcome:
        case GaveUp() if solvable:
            yield Sign(Label.REASONING, "gave up a solvable task", True)
        case Finished() if solvable is False:
            yield Sign(Label.REASONING, "did not give up an unsolvable task", True)
        case Finished() if solvable and not episode.calls:
            yield Sign(Label.REASONING, "finished without a call", True)
        case Finished() if solvable:
            failed = [name for name, holds in episode.result.row.score.checks.items() if not holds]
            yield Sign(Label.REASONING, f"finished with failed checks: {', '.join(failed)}", True)


def _not_recovered(episode: FailedEpisode) -> Iterator[Sign]:
    for index, call in enumerate(episode.calls):
        if call.failure and call.fired_rules and not _answered_later(episode.calls, index):
            text = (
                f"call {index + 1}: a fault fired on {call.tool_name}, which never succeeded later"
            )
            # Only in a solvable task was it the agent's decision not to recover.
            label = Label.REASONING if episode.result.task.solvable else Label.UNATTRIBUTED
            yield Sign(label, text, True)
            return


RULES: tuple[Rule, ...] = (_stopped, _unreadable, _invalid, _loop, _wrong_end, _not_recovered)


def _answered_later(calls: Sequence[AnsweredCall], index: int) -> bool:
    tool = calls[index].tool_name
    return any(later.tool_name == tool and not later.failure for later in calls[index + 1 :])


def _call_text(call: AnsweredCall) -> str:
    answer = call.output if call.failure is None else call.failure.to_json()
    return canonical_json([call.tool_name, dict(call.sent), answer])
