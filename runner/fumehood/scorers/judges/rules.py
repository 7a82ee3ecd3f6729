"""Judges that need no model: a list of rules, and the comparison with a known answer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from fumehood.core.character_forms import usual_characters
from fumehood.scorers.judges.question import YES_NO, Question

RESPONSE = "response"
"""Title of the text that :class:`Exact` compares."""
_FINAL = re.compile(r"^[^\w\n]*exact answer\W*:\s*(.+)$", re.IGNORECASE | re.MULTILINE)
"""An agent wrote the text, so the time must be linear. ``^\\W*`` would also match line breaks, and
take quadratic time on a text of blank lines."""
_ARTICLES = frozenset({"a", "an", "the"})
_PUNCTUATION = "_.,:;!?…\"'`´‘’“”„«»()[]{}<>*~|/\\-‐‑‒–—"
_WORD = re.compile(
    rf"(?<![^\W_])[-−]?\d+(?:[.,]\d+)+|(?<![^\W_])[-−]\d+|[^\W_]+|[^\w\s{re.escape(_PUNCTUATION)}]"
)
"""A number with its sign and its decimals, a word, or a sign that changes the meaning, such as the
signs of ``C++`` and ``$5``."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the list."""

    answer: str
    criterion: str = "*"
    """Name of a criterion, or a shell pattern of such names."""
    contains: str = ""
    """Text that one of the question's texts must contain; case is ignored."""


class Rules:
    """Answers with the first rule that matches; without a match the question stays undecided."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)

    def judge(self, question: Question) -> str | None:
        """Return the answer of the first matching rule if it is one of the question's answers."""
        texts = [text.casefold() for text in question.texts.values()]
        for rule in self._rules:
            if fnmatchcase(question.name, rule.criterion) and any(
                rule.contains.casefold() in text for text in texts
            ):
                return rule.answer if question.permits(rule.answer) else None
        return None


class Exact:
    """Compares words with the known answer, ignoring case, accents, articles and punctuation.

    Signs and decimals of numbers count, and so do symbols such as ``+`` and ``$``. It rejects
    correct answers in other words.
    """

    def judge(self, question: Question) -> str | None:
        """Compare the last line "Exact Answer: …", or the whole response if there is no such
        line."""
        response = question.texts.get(RESPONSE)
        if question.right_answer is None or response is None or question.answers != YES_NO:
            return None
        answers = _FINAL.findall(response)
        is_right = words(answers[-1] if answers else response) == words(question.right_answer)
        return "yes" if is_right else "no"


def words(text: str) -> list[str]:
    """Return the words that are compared."""
    plain = usual_characters(text).casefold()
    plain = "".join(sign for sign in plain if not unicodedata.combining(sign))
    every = [word.replace("−", "-") for word in _WORD.findall(plain)]
    # An answer may consist of articles only, such as the letter of a choice.
    return [word for word in every if word not in _ARTICLES] or every
