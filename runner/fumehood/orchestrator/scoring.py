"""Turns an attempt into an outcome and a score; reads only the trace, the exit and the gold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from fumehood.core.errors import SpecError
from fumehood.core.evidence import Evidence, read_evidence
from fumehood.core.outcome import AgentCrashed, Infra, InfraKind, Outcome
from fumehood.core.score import UNGRADED, Score
from fumehood.core.task import Case
from fumehood.core.trace import BrokenTrace, Record, verify_chain
from fumehood.engines.engine import Exit, ExitReason
from fumehood.scorers.judges.question import Ask, no_judge
from fumehood.scorers.registry import score_evidence

RECORDABLE = "recordable"
"""Check of an attempt whose calls left the world in a state that cannot be recorded."""


@dataclass(frozen=True, slots=True)
class ScoredAttempt:
    """The outcome and the score of an attempt."""

    outcome: Outcome
    score: Score
    trace_digest: str
    """Digest of the complete trace; empty if there is none."""
    evidence: Evidence | None


def score_attempt(
    case: Case,
    records: Sequence[Record],
    agent_exit: Exit | None,
    infra: Infra | None,
    ask: Ask = no_judge,
) -> ScoredAttempt:
    """Score one attempt.

    Args:
        case: the task and its gold.
        records: the whole trace.
        agent_exit: exit of the agent's process; None if it had to be stopped.
        infra: failure of the infrastructure, which is never scored; None if there was none.
        ask: asks the run's judge about criteria that no rule decides.
    """
    if infra is not None:
        return _ungraded(infra)
    try:
        digest = verify_chain(records)
        evidence = read_evidence(json.loads(record.event_json) for record in records)
    except BrokenTrace as error:
        return _ungraded(Infra(InfraKind.SERVICE, str(error)))
    except ValueError as error:
        return _ungraded(Infra(InfraKind.SERVICE, f"the trace cannot be read: {error}"))
    outcome = decide_outcome(case, evidence, agent_exit)
    if isinstance(evidence.ends.get(case.task.seats[0].name), AgentCrashed):
        # The final state is unknown.
        return ScoredAttempt(outcome, Score(False, {RECORDABLE: False}), digest, evidence)
    try:
        score = score_evidence(case.task, case.gold, evidence, ask)
    except SpecError as error:
        return ScoredAttempt(Infra(InfraKind.TASK, str(error)), UNGRADED, digest, evidence)
    return ScoredAttempt(outcome, score, digest, evidence)


def decide_outcome(case: Case, evidence: Evidence, agent_exit: Exit | None) -> Outcome:
    """Return the outcome of the first seat, from the trace or else from its process's exit."""
    seat = case.task.seats[0].name
    if seat in evidence.ends:
        return evidence.ends[seat]
    if agent_exit is None:
        return Infra(InfraKind.SERVICE, "the box was stopped, but its seat had not ended")
    return AgentCrashed(_crash_detail(agent_exit))


def _crash_detail(agent_exit: Exit) -> str:
    match agent_exit.reason:
        case ExitReason.OUT_OF_MEMORY:
            return "out of memory"
        case ExitReason.KILLED:
            return "killed"
        case ExitReason.EXITED if agent_exit.code == 0:
            return "exited without submitting"
        case ExitReason.EXITED:
            return f"exit status {agent_exit.code}"


def _ungraded(infra: Infra) -> ScoredAttempt:
    return ScoredAttempt(infra, UNGRADED, "", None)
