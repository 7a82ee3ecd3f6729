"""Scores episodes with the scorer that the gold names."""

from __future__ import annotations

from collections.abc import Iterable

from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.score import Score
from fumehood.core.task import Case, Task
from fumehood.scorers.registry import SCORERS


def score_episode(task: Task, gold: Gold, evidence: Evidence) -> Score:
    return SCORERS.load(gold.scorer)().score(task, gold, evidence)


def play(case: Case, moves: Iterable[Move]) -> Score:
    return score_episode(case.task, case.gold, play_in_memory(case.task, moves))
