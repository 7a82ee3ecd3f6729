"""What a scorer is."""

from __future__ import annotations

from typing import Protocol

from runner.core.evidence import Evidence
from runner.core.gold import Gold
from runner.core.score import Score
from runner.core.task import Task


class Scorer(Protocol):
    """Judges one closed episode from what its trace proves."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the verdict.

        Raises:
            SpecError: a criterion cannot be evaluated at all.
        """
        ...
