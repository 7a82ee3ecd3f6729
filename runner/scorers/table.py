"""Every scorer there is."""

from __future__ import annotations

from collections.abc import Callable

from runner.core.evidence import Evidence
from runner.core.gold import Gold
from runner.core.registry import Registry
from runner.core.score import Score
from runner.core.task import Task
from runner.scorers.scorer import Scorer

SCORERS: Registry[Callable[[], Scorer]] = Registry(
    "scorer",
    {
        "native": "runner.scorers.native:NativeScorer",
        "toolmisuse": "runner.scorers.toolmisuse:ToolMisuseScorer",
    },
)


def score_evidence(task: Task, gold: Gold, evidence: Evidence) -> Score:
    """Return what the scorer says that the gold names.

    Raises:
        InputError: there is no such scorer.
        SpecError: a criterion cannot be evaluated at all.
    """
    return SCORERS.load(gold.scorer)().score(task, gold, evidence)
