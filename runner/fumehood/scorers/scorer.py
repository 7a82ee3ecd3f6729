"""What a scorer is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.judges.question import Opinion, Question


class Scorer(Protocol):
    """Judges one closed episode from what its trace proves."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the verdict.

        Raises:
            SpecError: a criterion cannot be evaluated at all.
        """
        ...


@runtime_checkable
class JudgedScorer(Protocol):
    """A scorer some of whose criteria need an opinion. It asks nobody itself: it says what is to be asked,
    and is given what came of it. Its ``score`` is what it says without opinions."""

    def questions(self, task: Task, gold: Gold, evidence: Evidence) -> Sequence[Question]:
        """Return what is to be asked; nothing where the verdict does not hang on it."""
        ...

    def score_with(
        self, task: Task, gold: Gold, evidence: Evidence, opinions: Mapping[str, Opinion]
    ) -> Score:
        """Return the verdict.

        Args:
            task: that was attempted.
            gold: of the task.
            evidence: of the attempt.
            opinions: by name of the question.
        """
        ...
