"""The protocol of rule judges and the registry of all rule judges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fumehood.core.registry import Registry
from fumehood.scorers.judges.question import Question


class Judge(Protocol):
    """Answers questions by a rule, without a model."""

    def judge(self, question: Question) -> str | None:
        """Return one of the question's answers, or None if the rule does not decide the question.

        The texts of the question are untrusted: the agent under evaluation wrote them.
        """
        ...


JUDGES: Registry[Callable[[], Judge]] = Registry(
    "judge", {"exact": "fumehood.scorers.judges.rules:Exact"}
)
