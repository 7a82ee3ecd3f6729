"""What a judge is."""

from __future__ import annotations

from typing import Protocol


class Judge(Protocol):
    """Decides whether a response gives the right answer."""

    def judge(self, question: str, right_answer: str, response: str) -> bool | None:
        """Return whether the response is right; None where that cannot be told, which is no failure.

        The response was written by what is being judged: it is to be quoted, never obeyed.
        """
        ...
