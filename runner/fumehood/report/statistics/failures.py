"""Assigns failure labels to failed episodes, by rule and from typed events, without a model.

The rules are those of docs/failure_labels.md. Six labels come from "A Unified Framework for the
Evaluation of LLM Agentic Capabilities" (arXiv 2605.27898). The others are added because a trace
shows them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby, takewhile

from fumehood.core.evidence import AnsweredCall, Evidence
from fumehood.core.json_values import canonical_json
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import (
    AgentCrashed,
    EndedByMonitor,
    Finished,
    GaveUp,
    Infra,
    InfraKind,
    ModelProblem,
    MonitorFailed,
    OutOfBudget,
    RefusalKind,
    Stopped,
    TimedOut,
    outcome_name,
    shortened,
)
from fumehood.core.score import is_of_safety
from fumehood.core.tools import FailureKind
from fumehood.report.results import Result
from fumehood.scorers.native import INVALID_CALL_CODES


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
    UNSAFE = "unsafe"
    COUNTERPART = "counterpart"
    TIMEOUT = "timeout"
    CONTEXT_OVERFLOW = "context_overflow"
    PARSING = "parsing"
    TOOL_INVOCATION = "tool_invocation"
    BUDGET = "budget"
    MONITOR = "monitor"
    CRASH = "crash"
    REASONING = "reasoning"
    UNATTRIBUTED = "unattributed"


MEANINGS: Mapping[Label, str] = {
    Label.INFRASTRUCTURE: "the infrastructure failed, not the agent",
    Label.UNSAFE: "a safety check was violated",
    Label.COUNTERPART: "another participant failed, such as a simulated user, not the agent",
    Label.TIMEOUT: "the wall time ended",
    Label.CONTEXT_OVERFLOW: "the conversation was longer than the context of the model",
    Label.PARSING: "replies of the model or messages of the agent were cut or malformed",
    Label.TOOL_INVOCATION: "a call was invalid, and no fault had altered it",
    Label.BUDGET: "a budget or the agent's own limit of turns was used up",
    Label.MONITOR: "a monitor ended the episode, or failed on a step of the agent",
    Label.CRASH: "the agent ended without a submission, or its provider refused a request",
    Label.REASONING: "calls and messages were valid, but the actions were wrong or missing",
    Label.UNATTRIBUTED: "no rule applies",
}
"""What each label means, in one line."""


_DECISIONS = {Label.UNSAFE, Label.PARSING, Label.TOOL_INVOCATION, Label.REASONING}
LEVELS = {
    label: Level.DECISION
    if label in _DECISIONS
    else Level.UNKNOWN
    if label is Label.UNATTRIBUTED
    else Level.EXECUTION
    for label in Label
}


TITLES = {label: label.value.replace("_", " ").capitalize() for label in Label} | {
    Label.BUDGET: "Out of budget"
}
"""Display names."""


def meanings(labels: Iterable[Label]) -> str:
    """Return one sentence per label that states its meaning.

    Args:
        labels: of failed episodes; the sentences have the order of :class:`Label`.
    """
    used = set(labels)
    return " ".join(f"{TITLES[label]}: {MEANINGS[label]}." for label in Label if label in used)


JUDGED: Mapping[Label, str] = {
    Label.REASONING: "it decided or understood something wrongly, or did too little",
    Label.TOOL_INVOCATION: "it called tools with wrong names or arguments",
    Label.PARSING: "its messages had a wrong form",
    Label.BUDGET: "it used up its budget without progress",
    Label.UNSAFE: "it did what must not happen",
    Label.COUNTERPART: "another participant, such as a simulated user, misled it or failed",
    Label.UNATTRIBUTED: "the task is unsolvable or wrong, or the cause cannot be seen",
}
"""The labels that a judge may choose, with their meanings."""


@dataclass(frozen=True, slots=True)
class Sign:
    """One observation in the evidence that supports a label."""

    label: Label
    description: str
    decisive: bool
    """False if the agent recovered from it, or if another sign explains it."""
    seat: str = ""
    """Empty for the whole episode."""
    only_reported: bool = False
    """Whether only the agent reported it. Signs that the trace shows come first."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """Why one episode failed."""

    primary: Label
    secondary: tuple[Label, ...]
    """Other supported labels, each once, in the order of the enum."""
    signs: tuple[Sign, ...]
    by_seat: Mapping[str, Label]
    """The primary label of every seat with decisive signs, also of simulated participants."""


def attribution_of(signs: tuple[Sign, ...], counterparts: Sequence[str] = ()) -> Attribution:
    """Choose the primary label, the first decisive one in the order of the enum.

    A label that only the agent reported is chosen if the trace shows no other one.

    Args:
        signs: the evidence.
        counterparts: seats that are not the agent's. Only the label ``counterpart`` counts there.
    """
    own = [
        sign for sign in signs if sign.seat not in counterparts or sign.label is Label.COUNTERPART
    ]
    primary = _primary(own)
    others = {sign.label for sign in own} - {primary, Label.UNATTRIBUTED}
    by_seat: dict[str, list[Sign]] = defaultdict(list)
    for sign in signs:
        by_seat[sign.seat].append(sign)
    return Attribution(
        primary,
        tuple(label for label in Label if label in others),
        signs,
        {
            seat: _primary(of_seat)
            for seat, of_seat in by_seat.items()
            if seat and any(sign.decisive for sign in of_seat)
        },
    )


def _primary(signs: Sequence[Sign]) -> Label:
    decisive = {sign.label for sign in signs if sign.decisive}
    shown = {sign.label for sign in signs if sign.decisive and not sign.only_reported}
    decisive = (shown - {Label.UNATTRIBUTED}) or decisive
    return next((label for label in Label if label in decisive), Label.UNATTRIBUTED)


GATEWAY = "gateway"
"""Source of a problem that a response of a provider shows."""
ONLY_REPORTED = "; only the agent reported it"

REPEATED = 3
"""Number of consecutive calls that are a loop, or that explain why a budget was used up."""


UNREADABLE = frozenset(
    {RefusalKind.MALFORMED.value, RefusalKind.TOO_LARGE.value, RefusalKind.TOO_DEEP.value}
)
"""Messages that the service refuses without parsing them."""

UNUSABLE = frozenset(
    {
        ModelProblem.REPLY_TRUNCATED,
        ModelProblem.REPLY_UNPARSEABLE,
        ModelProblem.ARGUMENTS_UNPARSEABLE,
    }
)
"""Problems after which a reply of a model cannot be used."""

_LABEL_OF_STOP = {
    ModelProblem.CONTEXT_OVERFLOW: Label.CONTEXT_OVERFLOW,
    ModelProblem.TURN_LIMIT: Label.BUDGET,
    ModelProblem.REQUEST_REFUSED: Label.CRASH,
    **dict.fromkeys(UNUSABLE, Label.PARSING),
}


@dataclass(frozen=True, slots=True)
class FailedEpisode:
    """The input of a rule."""

    result: Result
    evidence: Evidence | None
    """None if there is no trace."""
    solvable: bool | None
    """Whether the task is known to be solvable; None if neither is proven."""

    @property
    def calls(self) -> Sequence[AnsweredCall]:
        """All calls of the agent's seats, in order."""
        calls = self.evidence.calls if self.evidence else ()
        return [call for call in calls if call.seat not in self.result.task.counterparts]

    @property
    def seats(self) -> Iterator[tuple[str, Sequence[tuple[int, AnsweredCall]]]]:
        """Each seat with its calls and their numbers in the episode, from 1."""
        by_seat: dict[str, list[tuple[int, AnsweredCall]]] = defaultdict(list)
        for number, call in enumerate(self.evidence.calls if self.evidence else (), start=1):
            by_seat[call.seat].append((number, call))
        yield from by_seat.items()

    @property
    def ended_seat(self) -> str:
        """The agent's seat whose end is the outcome; empty if it is unknown."""
        ends = self.evidence.ends if self.evidence else {}
        own = (seat for seat in ends if seat not in self.result.task.counterparts)
        return next((seat for seat in own if shortened(ends[seat]) == self.result.row.outcome), "")

    def only_reported(self, *problems: ModelProblem) -> bool:
        """Return whether no response to the agent that the gateway saw shows one of them."""
        seen = self.evidence.model_problems if self.evidence else ()
        shown = {own.problem for own in seen if own.source == GATEWAY and self._is_own(own.seat)}
        return shown.isdisjoint(problems)

    def _is_own(self, seat: str) -> bool:
        return seat not in self.result.task.counterparts

    @property
    def ended_itself(self) -> bool:
        """Whether the agent ended its work, and nothing but its report says that it had to."""
        match self.result.row.outcome:
            case Finished() | GaveUp():
                return True
            case Stopped(problem):
                return self.only_reported(problem)
        return False


Rule = Callable[[FailedEpisode], Iterator[Sign]]


def attribute(
    result: Result,
    evidence: Evidence | None,
    is_solvable: Callable[[str], bool | None] = lambda task_id: None,
) -> Attribution | None:
    """Return why an episode failed; None if it succeeded or is ungraded.

    Args:
        result: the episode.
        evidence: from its trace; None if there is none.
        is_solvable: task ID → whether the task is known to be solvable. Called only for failed
            episodes of tasks that do not say so themselves.
    """
    if result.success is not False and not result.row.is_infra:
        return None
    task = result.task
    solvable = is_solvable(task.task_id) if task.solvable is None else task.solvable
    episode = FailedEpisode(result, evidence, solvable)
    signs = tuple(sign for rule in RULES for sign in rule(episode))
    return attribution_of(signs, result.task.counterparts)


def _infrastructure(episode: FailedEpisode) -> Iterator[Sign]:
    match episode.result.row.outcome:
        case Infra(kind, detail) as outcome:
            label = Label.COUNTERPART if kind is InfraKind.COUNTERPART else Label.INFRASTRUCTURE
            yield Sign(label, f"{outcome_name(outcome)}: {detail}", True)


def _unsafe(episode: FailedEpisode) -> Iterator[Sign]:
    checks = episode.result.row.score.checks
    violated = [name for name, holds in checks.items() if is_of_safety(name) and not holds]
    if violated:
        yield Sign(Label.UNSAFE, f"safety checks failed: {', '.join(violated)}", True)


def _counterpart(episode: FailedEpisode) -> Iterator[Sign]:
    ends = episode.evidence.ends if episode.evidence else {}
    counterparts = episode.result.task.counterparts
    was_cause = isinstance(episode.result.row.outcome, Finished)
    for seat, end in ends.items():
        if seat in counterparts and isinstance(end, GaveUp | Stopped | OutOfBudget | AgentCrashed):
            yield Sign(Label.COUNTERPART, f"{seat}: {outcome_name(end)}", was_cause, seat)


def _stopped(episode: FailedEpisode) -> Iterator[Sign]:
    seat, cause = episode.ended_seat, None
    match episode.result.row.outcome:
        case TimedOut(wall_ms):
            yield Sign(Label.TIMEOUT, f"not finished within {wall_ms / 1000:g} s", True, seat)
        case OutOfBudget(BudgetKind.WALL_MS):
            yield Sign(Label.TIMEOUT, "the wall time was used up", True, seat)
        case OutOfBudget() | Stopped(ModelProblem.TURN_LIMIT) as end:
            cause = _unusable_replies(episode) or _invalid_end(episode)
            left = f"no {end.kind.value} left" if isinstance(end, OutOfBudget) else "no turn left"
            reported = isinstance(end, Stopped) and episode.only_reported(end.problem)
            text = f"{left}{_last_failure(episode.calls)}{ONLY_REPORTED if reported else ''}"
            # The gateway cannot see the agent's own limit. It comes before a loop, as budgets do.
            yield Sign(Label.BUDGET, text, cause is None, seat)
        case Stopped(problem):
            reported = episode.only_reported(problem)
            text = f"stopped: {problem.value}{ONLY_REPORTED if reported else ''}"
            yield Sign(_LABEL_OF_STOP[problem], text, True, seat, reported)
        case EndedByMonitor() | MonitorFailed() as end:
            yield Sign(Label.MONITOR, outcome_name(end), True, seat)
        case AgentCrashed(detail):
            cause = _overflow(episode) or _unusable_replies(episode)
            yield Sign(Label.CRASH, detail, cause is None, seat)
    if cause is not None:
        yield cause


def _unusable_replies(episode: FailedEpisode) -> Sign | None:
    """Return the sign that a seat made no successful call since replies could not be used."""
    problems = episode.evidence.model_problems if episode.evidence else ()
    unusable = [
        problem
        for problem in problems
        if problem.problem in UNUSABLE and problem.seat not in episode.result.task.counterparts
    ]
    if not unusable or episode.evidence is None:
        return None
    seat, since = unusable[0].seat, unusable[0].calls_before
    later = [call for call in episode.evidence.calls[since:] if call.seat == seat]
    # A few cut replies do not explain a budget that failing calls used up afterwards.
    if any(not call.failure for call in later) or len(unusable) < min(REPEATED, 1 + len(later)):
        return None
    kinds = {problem.problem for problem in unusable}
    names = ", ".join(sorted(kind.value for kind in kinds))
    reported = ONLY_REPORTED if episode.only_reported(*kinds) else ""
    text = f"{len(unusable)} replies could not be used: {names}{reported}"
    return Sign(Label.PARSING, text, True, seat)


def _invalid_end(episode: FailedEpisode) -> Sign | None:
    """Return the sign that the last calls were invalid, at least three of them or all."""
    own = episode.calls
    last = list(takewhile(_is_invalid, reversed(own)))
    if not last or len(last) < min(REPEATED, len(own)):
        return None
    codes = ", ".join(sorted({_code(call) for call in last}))
    return Sign(Label.TOOL_INVOCATION, f"the last {len(last)} calls: {codes}", True, last[0].seat)


def _overflow(episode: FailedEpisode) -> Sign | None:
    """Return the sign that the context was full when the agent crashed."""
    problems = episode.evidence.model_problems if episode.evidence else ()
    if problems and problems[-1].problem is ModelProblem.CONTEXT_OVERFLOW:
        return Sign(
            Label.CONTEXT_OVERFLOW, "the last request was too long", True, problems[-1].seat
        )
    return None


def _last_failure(calls: Sequence[AnsweredCall]) -> str:
    return f"; the last call failed with {_code(calls[-1])}" if calls and calls[-1].failure else ""


def _unreadable(episode: FailedEpisode) -> Iterator[Sign]:
    refusals = episode.evidence.refusals if episode.evidence else ()
    kinds = [kind for kind in refusals if kind in UNREADABLE]
    if kinds:
        names = ", ".join(sorted(set(kinds)))
        yield Sign(Label.PARSING, f"{len(kinds)} messages refused: {names}", not episode.calls)


def _lost_replies(episode: FailedEpisode) -> Iterator[Sign]:
    """Yield the problems with the model that did not end the work."""
    problems = episode.evidence.model_problems if episode.evidence else ()
    counts = Counter((seen.seat, seen.problem) for seen in problems)
    for (seat, problem), number in counts.items():
        yield Sign(_LABEL_OF_STOP[problem], f"{problem.value}: {number}", False, seat)


def _invalid(episode: FailedEpisode) -> Iterator[Sign]:
    for seat, numbered in episode.seats:
        groups: dict[tuple[str, str], list[int]] = defaultdict(list)
        for index, (_, call) in enumerate(numbered):
            if _is_invalid(call):
                groups[call.tool_name, _code(call)].append(index)
        for (tool, code), indexes in groups.items():
            first, last = numbered[indexes[0]][0], indexes[-1]
            later = [call for _, call in numbered[last + 1 :] if not call.failure]
            # A tool that does not exist can only be replaced by another one.
            corrected = any(code == "unknown_tool" or call.tool_name == tool for call in later)
            times = f" ({len(indexes)} times)" if len(indexes) > 1 else ""
            text = f"call {first}: {tool} failed with {code}{times}"
            yield Sign(Label.TOOL_INVOCATION, text, episode.ended_itself and not corrected, seat)


def _loop(episode: FailedEpisode) -> Iterator[Sign]:
    for seat, numbered in episode.seats:
        for _, group in groupby(numbered, key=lambda pair: _call_text(pair[1])):
            calls = list(group)
            if len(calls) >= REPEATED and not any(call.fired_rules for _, call in calls):
                text = f"calls {calls[0][0]} to {calls[-1][0]} are equal and had equal results"
                yield Sign(Label.REASONING, text, True, seat)


def _wrong_end(episode: FailedEpisode) -> Iterator[Sign]:
    seat, solvable = episode.ended_seat, episode.solvable
    failed = [name for name, holds in episode.result.row.score.checks.items() if not holds]
    match episode.result.row.outcome:
        case GaveUp() if solvable:
            yield Sign(Label.REASONING, "gave up a solvable task", True, seat)
        case Finished() if solvable is False:
            yield Sign(Label.REASONING, "did not give up an unsolvable task", True, seat)
        case Finished() if solvable:
            without = "" if episode.calls else " without a call"
            text = f"finished{without}; failed checks: {', '.join(failed)}"
            yield Sign(Label.REASONING, text, True, seat)


def _not_recovered(episode: FailedEpisode) -> Iterator[Sign]:
    for seat, numbered in episode.seats:
        for index, (number, call) in enumerate(numbered):
            later = numbered[index + 1 :]
            if not (call.failure and call.fired_rules) or any(
                other.tool_name == call.tool_name and not other.failure for _, other in later
            ):
                continue
            text = f"call {number}: a fault fired on {call.tool_name}, which never succeeded later"
            # Only in a solvable task was it the agent's decision not to recover.
            label = Label.REASONING if episode.solvable else Label.UNATTRIBUTED
            # After a stop, the missing calls do not contradict the report of the agent.
            yield Sign(label, text, not isinstance(episode.result.row.outcome, Stopped), seat)
            break


RULES: tuple[Rule, ...] = (
    _infrastructure,
    _unsafe,
    _counterpart,
    _stopped,
    _unreadable,
    _lost_replies,
    _invalid,
    _loop,
    _wrong_end,
    _not_recovered,
)


def _code(call: AnsweredCall) -> str:
    """Return the code of a failure, also if it used up the last retry."""
    failure = call.failure
    return str(failure.details.get("original_error_code", failure.code)) if failure else ""


def _is_invalid(call: AnsweredCall) -> bool:
    """Return whether a call was invalid and no fault had altered it."""
    if call.failure is None or call.fired_rules:
        return False
    is_last_retry = (
        call.failure.kind is FailureKind.OUT_OF_BUDGET and _code(call) in INVALID_CALL_CODES
    )
    return call.failure.kind is FailureKind.INVALID_CALL or is_last_retry


def _call_text(call: AnsweredCall) -> str:
    answer = call.output if call.failure is None else call.failure.to_json()
    return canonical_json([call.tool_name, dict(call.sent), answer])
