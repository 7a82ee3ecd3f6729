"""The judge that asks nobody: the same words, apart from case, accents, articles and punctuation."""

from __future__ import annotations

import re
import unicodedata

from fumehood.scorers.judges.question import YES_NO, Question

RESPONSE = "response"
"""Title of the text that is compared."""
_FINAL = re.compile(r"^\W*exact answer\W*:\s*(.+)$", re.IGNORECASE | re.MULTILINE)
_ARTICLES = frozenset({"a", "an", "the"})


class Exact:
    """Strict: it finds right answers wrong that are put in other words, and never a wrong one right."""

    def judge(self, question: Question) -> str | None:
        """Compare the last line "Exact Answer: …", or the whole response where there is none."""
        response = question.texts.get(RESPONSE)
        if question.right_answer is None or response is None or question.answers != YES_NO:
            return None
        found = _FINAL.findall(response)
        is_right = words(found[-1] if found else response) == words(question.right_answer)
        return "yes" if is_right else "no"


def words(text: str) -> list[str]:
    """Return the words that count."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    plain = "".join(sign for sign in plain if not unicodedata.combining(sign))
    return [word for word in re.findall(r"\w+", plain) if word not in _ARTICLES]
