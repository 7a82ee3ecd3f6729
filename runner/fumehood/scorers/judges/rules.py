"""The judge that follows a list: what to answer where a text holds certain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from fumehood.scorers.judges.question import Question


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the list."""

    answer: str
    criterion: str = "*"
    """Name or pattern of the criteria that it is about."""
    contains: str = ""
    """Words that one of the texts must hold, whatever their case."""


class Rules:
    """The first rule that fits decides; where none does, nothing is decided."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)

    def judge(self, question: Question) -> str | None:
        """Return the first fitting rule's answer, where the question has it among its own."""
        texts = [text.casefold() for text in question.texts.values()]
        for rule in self._rules:
            if fnmatchcase(question.name, rule.criterion) and any(
                rule.contains.casefold() in text for text in texts
            ):
                return rule.answer if rule.answer in question.answers else None
        return None
