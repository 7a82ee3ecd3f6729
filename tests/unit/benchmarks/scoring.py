"""Scores episodes with the scorer that the gold names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.evidence import Evidence
from fumehood.core.fault_plan import FaultRule
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json
from fumehood.core.score import Score
from fumehood.core.task import Case, Task
from fumehood.scorers.registry import SCORERS


def score_episode(task: Task, gold: Gold, evidence: Evidence) -> Score:
    return SCORERS.load(gold.scorer)().score(task, gold, evidence)


def play(case: Case, moves: Iterable[Move]) -> Score:
    return score_episode(case.task, case.gold, play_in_memory(case.task, moves))


def with_fault(case: Case, family: str, nth_call: int, **payload: Json) -> Case:
    """Return the case with a fault on one call."""
    rule = FaultRule(0, family, {"on_nth_call": nth_call}, "soft", payload)
    return replace(case, task=replace(case.task, fault_plan=(rule,)))
