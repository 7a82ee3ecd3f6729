"""Builds calls and evidence for tests of scorers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fumehood.core.episode_spec import ONLY_SEAT, SeatSpec
from fumehood.core.evidence import AnsweredCall, Evidence, ShownFailure
from fumehood.core.fault_plan import FaultRule
from fumehood.core.gold import Gold
from fumehood.core.ledger import Budget
from fumehood.core.outcome import Finished, SeatEnd
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.core.tools import FailureKind
from fumehood.scorers.native import NativeScorer

SUBMITTED = Finished()


def answered(
    tool_name: str = "t", *fired_rules: int, arguments_after: Any = None, **sent: Any
) -> AnsweredCall:
    """Return a successful call."""
    arguments = sent if arguments_after is None else arguments_after
    return AnsweredCall(ONLY_SEAT, tool_name, sent, arguments, {}, None, fired_rules, "")


def failed(
    kind: FailureKind,
    tool_name: str = "t",
    *fired_rules: int,
    code: str = "e",
    original: str = "",
    **sent: Any,
) -> AnsweredCall:
    """Return a failed call."""
    failure = ShownFailure(kind, code, "", {"original_error_code": original} if original else {})
    return AnsweredCall(ONLY_SEAT, tool_name, sent, sent, None, failure, fired_rules, "")


def evidence(
    *calls: AnsweredCall,
    state: Mapping[str, Any] | None = None,
    end: SeatEnd | None = SUBMITTED,
    fire_counts: Sequence[int] = (),
) -> Evidence:
    """Return the evidence of a closed episode; without ``end`` its agent stopped early."""
    ends = {} if end is None else {ONLY_SEAT: end}
    return Evidence(calls, (), ends, dict(state or {}), tuple(fire_counts))


def task(state: Mapping[str, Any] | None = None, *families: str) -> Task:
    """Return a task that plans these faults."""
    return Task(
        task_id="t",
        world="files",
        harness_mode="native",
        initial_state=dict(state or {}),
        fault_plan=tuple(FaultRule(index, family) for index, family in enumerate(families)),
        seed=0,
        seats=(SeatSpec(instruction="", budget=Budget()),),
        tags={},
    )


def judged(
    criterion: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    given: Evidence,
    before: Mapping[str, Any] | None = None,
    *families: str,
    solvable: bool = True,
) -> Score:
    """Return the score of the native scorer."""
    criteria = [criterion] if isinstance(criterion, Mapping) else criterion
    return NativeScorer().score(
        task(before, *families), Gold("native", tuple(criteria), solvable), given
    )


def holds(
    criterion: Mapping[str, Any], given: Evidence, before: Mapping[str, Any] | None = None
) -> bool:
    """Return whether one criterion holds."""
    score = judged(criterion, given, before)
    return score.checks[f"check_0:{criterion['op']}"]
