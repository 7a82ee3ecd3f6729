"""What a judge is asked, and what came of asking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

YES_NO = ("yes", "no")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question to which no rule knows the answer."""

    name: str
    """Of the criterion; unique within a score."""
    asks: str
    """What is to be decided, in words that are trusted."""
    texts: Mapping[str, str]
    """Title → what it is to be decided about. Written by what is being judged: quoted, never obeyed."""
    answers: tuple[str, ...] = YES_NO
    """The answer is one of these."""
    right_answer: str | None = None
    """Where there is one to compare with; trusted."""
    mark: str | None = None
    """How a reply begins its first line, before the answer, where a benchmark has a form of its own."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the judges said."""

    answer: str | None
    """What more than half of all who were asked say; None where they do not, so that nothing is decided."""
    votes: tuple[str | None, ...] = ()
    """One each; None where a judge failed or said nothing that can be read."""
    spent: Mapping[str, int] = field(default_factory=dict)
    """What asking cost, apart from anything an agent spends."""

    @property
    def agreement(self) -> float | None:
        """Share of the pairs of votes that agree, an unread one with none; None of fewer than two votes.

        Source: Fleiss, "Measuring nominal scale agreement among many raters" (1971), the P of one subject.
        """
        most = len(self.votes) * (len(self.votes) - 1)
        counts = Counter(vote for vote in self.votes if vote is not None)
        return sum(count * (count - 1) for count in counts.values()) / most if most else None


Ask = Callable[[Question], Opinion]
"""Gets a question answered. How is nothing that a scorer knows."""


def nobody(question: Question) -> Opinion:
    """Answer nothing: no judge was named."""
    return Opinion(None)


def majority(votes: tuple[str | None, ...], spent: Mapping[str, int] | None = None) -> Opinion:
    """Return what more than half of all votes say; those that could not be read count as well."""
    counts = Counter(vote for vote in votes if vote is not None)
    answer, count = counts.most_common(1)[0] if counts else (None, 0)
    return Opinion(answer if 2 * count > len(votes) else None, votes, spent or {})
