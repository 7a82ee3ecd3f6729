"""Turns an attempt into an outcome and a score; reads only the trace, the exit and the gold.

:mod:`fumehood.orchestrator.bounded_scoring` does this in a confined process with limits.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from fumehood.core.errors import InfraError, InputError, SpecError
from fumehood.core.evidence import Evidence, read_evidence
from fumehood.core.json_values import JsonObject
from fumehood.core.outcome import AgentCrashed, Infra, InfraKind, MonitorFailed, Outcome
from fumehood.core.score import UNGRADED, Score
from fumehood.core.task import Case
from fumehood.core.trace import BrokenTrace, Record, verify_chain
from fumehood.engines.engine import Exit, ExitReason
from fumehood.orchestrator.seat_exit import SeatExit
from fumehood.records.seals import UNREADABLE
from fumehood.records.trace_lines import unparsed_records
from fumehood.scorers.failed import failed_score
from fumehood.scorers.judges.question import Ask, no_judge
from fumehood.scorers.registry import SCORABLE, empty, score_evidence
from fumehood.third_party.process import QuestionFailed

RECORDABLE = "recordable"
"""Check of an attempt whose calls left the world in a state that cannot be recorded."""

MONITORED = "monitored"
"""Check of an attempt whose monitor failed on a step of the agent."""

UNREADABLE_TRACE = "the trace has events of unknown form"
LARGE_TRACE = "reading its trace exceeds the limits of scoring"
NO_END = "its work had not ended when its box was stopped"

ReadAttempt = tuple[Evidence, str, Outcome]
"""What the trace and the exit prove, the digest of the trace, and the outcome."""

_log = logging.getLogger("fumehood.run")


class NotScored(Enum):
    """Why an attempt cannot be scored."""

    CPU = "cpu_time"
    """Scoring exceeded its processor time."""
    MEMORY = "memory"
    """Scoring exceeded its memory."""
    ERROR = "error"
    """A scorer or a checker raised an exception, or its process crashed."""


@dataclass(frozen=True, slots=True)
class ScoredAttempt:
    """The outcome and the score of an attempt."""

    outcome: Outcome
    score: Score
    trace_digest: str
    """Digest of the complete trace; empty if there is none."""
    refusals: int
    """Messages that the service refused."""


@dataclass(frozen=True, slots=True)
class PlayedAttempt:
    """One attempt to score."""

    case: Case
    trace: Sequence[Record] | bytes
    """The records of the trace, or its content in the run folder."""
    agent_exit: Exit | None
    """How the process of the agent ended; None if it had to be stopped."""

    def records(self) -> Sequence[Record]:
        """Return the records of the trace.

        Raises:
            InputError: its content is not that of a trace.
        """
        if not isinstance(self.trace, bytes):
            return self.trace
        try:
            return unparsed_records(self.trace)
        except (ValueError, TypeError, KeyError, RecursionError):
            raise InputError("a trace of the run is not readable; see: fumehood verify") from None


def score_attempt(
    attempt: PlayedAttempt, infra: Infra | None = None, ask: Ask = no_judge
) -> ScoredAttempt:
    """Score one attempt.

    Args:
        attempt: what was played.
        infra: failure of the infrastructure, which is never scored; None if there was none.
        ask: asks the run's judge about criteria that no rule decides.

    Raises:
        InputError: the gold names no installed scorer, or a package of the scorer is missing.
    """
    if infra is not None:
        return _ungraded(infra)
    read, case = read_attempt(attempt), attempt.case
    if isinstance(read, Infra):
        return _ungraded(read)
    end = read[0].ends.get(case.task.seats[0].name)
    if isinstance(end, AgentCrashed):
        # The final state is unknown.
        return _failed(case, read, RECORDABLE)
    if isinstance(end, MonitorFailed):
        # Otherwise an agent could gain from a step on which its monitor fails.
        return _failed(case, read, MONITORED)
    return _score(case, read, ask)


def _failed(
    case: Case, read: ReadAttempt, check: str, metrics: JsonObject | None = None
) -> ScoredAttempt:
    try:
        return _scored(read, failed_score(case.task, case.gold, read[0], check, metrics))
    except InfraError as error:
        return _scored(read, Score(None, {}, {"ungraded": str(error)}))


def _score(case: Case, read: ReadAttempt, ask: Ask) -> ScoredAttempt:
    evidence, digest, _ = read
    why = NotScored.ERROR
    try:
        return _scored(read, score_evidence(case.task, case.gold, evidence, ask))
    except QuestionFailed:
        pass
    except InfraError as error:
        return _scored(read, Score(None, {}, {"ungraded": str(error)}))
    except SpecError as error:
        if fails_on_control(case):
            kind = InfraKind.TASK
            return ScoredAttempt(Infra(kind, str(error)), UNGRADED, digest, len(evidence.refusals))
    except InputError:
        raise
    except MemoryError:
        why = NotScored.MEMORY
    except Exception as error:
        # The text of the exception may contain text of the agent.
        error_name = type(error).__name__
        _log.warning("an attempt cannot be scored: %s in %s", error_name, case.gold.scorer)
    return not_scored(case, read, why, control_fails=fails_on_control(case))


def read_attempt(attempt: PlayedAttempt) -> ReadAttempt | Infra:
    """Return what the trace and the exit of an attempt prove, or why the trace cannot be read."""
    case, records = attempt.case, attempt.records()
    try:
        digest = verify_chain(records)
    except BrokenTrace as error:
        return Infra(InfraKind.SERVICE, str(error))
    try:
        evidence = read_evidence(json.loads(record.event_json) for record in records)
    except UNREADABLE:
        # Only an agent that took over the process of its episode writes such events.
        evidence = _crashed(case, UNREADABLE_TRACE)
    return evidence, digest, decide_outcome(case, evidence, attempt.agent_exit)


def fail_attempt(attempt: PlayedAttempt, why: NotScored, *, control_fails: bool) -> ScoredAttempt:
    """Return the failure of an attempt that exceeded the limits of scoring.

    Args:
        attempt: what was played.
        why: why it cannot be scored.
        control_fails: whether an episode without calls cannot be scored either.
    """
    read = read_attempt(attempt)
    if isinstance(read, Infra):
        return _ungraded(read)
    return not_scored(attempt.case, read, why, control_fails=control_fails)


def fail_unread(attempt: PlayedAttempt, why: NotScored, *, control_fails: bool) -> ScoredAttempt:
    """Return the failure of an attempt whose trace alone exceeds the limits; parses no event.
    Arguments as of :func:`fail_attempt`."""
    case = attempt.case
    try:
        digest = verify_chain(attempt.records())
    except BrokenTrace as error:
        return _ungraded(Infra(InfraKind.SERVICE, str(error)))
    evidence = _crashed(case, LARGE_TRACE)
    read = evidence, digest, decide_outcome(case, evidence, None)
    return not_scored(case, read, why, control_fails=control_fails)


def _crashed(case: Case, detail: str) -> Evidence:
    return Evidence((), (), {case.task.seats[0].name: AgentCrashed(detail)}, {}, ())


def not_scored(
    case: Case, read: ReadAttempt, why: NotScored, *, control_fails: bool
) -> ScoredAttempt:
    """Return a failure of the agent, or an ungraded attempt if the agent is not the cause.

    Args:
        case: the task and its gold.
        read: the attempt.
        why: why it cannot be scored.
        control_fails: whether an episode without calls cannot be scored either.
    """
    if control_fails:
        reason = f"an episode without calls cannot be scored either: {why.value}"
        return _scored(read, Score(None, {}, {"ungraded": reason}))
    return _failed(case, read, SCORABLE, {"not_scored": why.value})


def fails_on_control(case: Case) -> bool:
    """Return whether the scorer also fails on an episode in which the agent called nothing.

    Then the task or the scorer is the cause, and not the agent.
    """
    try:
        score_evidence(case.task, case.gold, empty(case.task))
    except Exception:
        return True
    return False


def decide_outcome(case: Case, evidence: Evidence, agent_exit: Exit | None) -> Outcome:
    """Return the outcome of the first seat, from the trace or else from its process's exit."""
    seat = case.task.seats[0].name
    if seat in evidence.ends:
        return evidence.ends[seat]
    if agent_exit is None:
        # The service writes the end of each seat before it stops a box.
        return AgentCrashed(NO_END)
    return AgentCrashed(_crash_detail(agent_exit))


def _crash_detail(agent_exit: Exit) -> str:
    where = f"seat {agent_exit.seat}: " if isinstance(agent_exit, SeatExit) else ""
    match agent_exit.reason:
        case ExitReason.OUT_OF_MEMORY:
            how = "out of memory"
        case ExitReason.KILLED:
            how = "killed"
        case ExitReason.EXITED if agent_exit.code == 0:
            how = "exited without submitting"
        case ExitReason.EXITED:
            how = f"exit status {agent_exit.code}"
    return where + how


def _scored(read: ReadAttempt, score: Score) -> ScoredAttempt:
    evidence, digest, outcome = read
    return ScoredAttempt(outcome, score, digest, len(evidence.refusals))


def _ungraded(infra: Infra) -> ScoredAttempt:
    return ScoredAttempt(infra, UNGRADED, "", 0)
