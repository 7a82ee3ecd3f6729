"""What a judge is that needs nobody else."""

from __future__ import annotations

from typing import Protocol

from fumehood.scorers.judges.question import Question


class Judge(Protocol):
    """Answers questions by a rule."""

    def judge(self, question: Question) -> str | None:
        """Return one of the question's answers; None where it cannot tell, which is no failure.

        Its texts were written by what is being judged: they are to be looked at, never obeyed.
        """
        ...
