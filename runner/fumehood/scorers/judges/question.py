"""Questions for a judge, the opinions that answer them, and scores that depend on opinions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from fumehood.core.json_values import JsonObject
from fumehood.core.score import UNDECIDED_SAFETY, Score, is_of_safety

YES_NO = ("yes", "no")
QUESTIONS = "judge_questions"
"""Metric: the number of questions that a judge was asked; missing if there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question that a judge answers."""

    name: str
    """Name of the criterion; unique within a score."""
    asks: str
    """The question. Trusted."""
    texts: Mapping[str, str]
    """Title → text to be judged. Untrusted: the agent under evaluation wrote it or caused it."""
    answers: tuple[str, ...] = YES_NO
    """The permitted answers. If there are none, the answer is the whole reply to ``published``,
    which the scorer reads."""
    right_answer: str | None = None
    """The known answer to compare with, if there is one. Trusted."""
    mark: str | None = None
    """Prefix of the first line of a reply, before the answer, for benchmarks with a fixed reply
    format."""
    published: str | None = None
    """The whole prompt of a published grader, which a model receives once instead of this project's
    prompt. Nothing separates the texts from the instructions."""

    def permits(self, answer: str | None) -> bool:
        """Return whether this is an answer to the question."""
        return answer is not None and (answer in self.answers or not self.answers)


@dataclass(frozen=True, slots=True)
class Opinion:
    """The result of asking one or more judges."""

    answer: str | None
    """The answer of more than half of all votes; None if there is no such answer."""
    votes: tuple[str | None, ...] = ()
    """One per judge; None if the judge failed or its reply could not be read."""
    spent: Mapping[str, int] = field(default_factory=dict)
    """Cost of asking, by kind; not part of an agent's budget."""
    is_lost: bool = False
    """Whether a judge did not answer at all, for instance because its provider was overloaded."""
    is_blocked: bool = False
    """Whether there is no answer only because of what the agent did: the judge answers the same
    question about an episode in which the agent did nothing."""

    @property
    def agreement(self) -> float | None:
        """Share of the pairs of votes that agree; None for fewer than two votes.

        A vote that could not be read agrees with no other. Source: Fleiss, "Measuring nominal scale
        agreement among many raters" (1971), P of one subject.
        """
        pairs = len(self.votes) * (len(self.votes) - 1)
        counts = Counter(vote for vote in self.votes if vote is not None)
        return sum(count * (count - 1) for count in counts.values()) / pairs if pairs else None


Ask = Callable[[Question], Opinion]
"""Answers a question. Scorers do not know which judge is used."""


def no_judge(question: Question) -> Opinion:
    """Leave the question undecided: the run has no judge."""
    return Opinion(None)


def majority(votes: tuple[str | None, ...], spent: Mapping[str, int] | None = None) -> Opinion:
    """Return the opinion of more than half of all votes, including the votes that could not be
    read."""
    counts = Counter(vote for vote in votes if vote is not None)
    answer, count = counts.most_common(1)[0] if counts else (None, 0)
    return Opinion(answer if 2 * count > len(votes) else None, votes, spent or {})


def judged_score(
    checks: Mapping[str, bool | None], opinions: Collection[Opinion], metrics: JsonObject
) -> Score:
    """Return the score: a failure if a check failed, ungraded if one is undecided, else a success.

    Args:
        checks: name → whether it holds; None if it is undecided.
        opinions: the opinions that the checks used.
        metrics: further metrics of the scorer.
    """
    success = (
        False if False in checks.values() else None if None in checks.values() else bool(checks)
    )
    decided = {name: held for name, held in checks.items() if held is not None}
    undecided = sum(map(is_of_safety, checks.keys() - decided.keys()))
    safety = {UNDECIDED_SAFETY: undecided} if undecided else {}
    return Score(success, decided, {**metrics, **safety, **opinion_metrics(opinions)})


def opinion_metrics(opinions: Collection[Opinion]) -> JsonObject:
    """Return the agreement and the cost of the judges; empty if no judge was asked."""
    voted = [opinion for opinion in opinions if opinion.votes]
    if not voted:
        return {}
    agreements = [opinion.agreement for opinion in voted if opinion.agreement is not None]
    spent: dict[str, int] = {}
    for opinion in voted:
        for kind, amount in opinion.spent.items():
            spent[kind] = spent.get(kind, 0) + amount
    return {
        QUESTIONS: len(voted),
        "judge_undecided": sum(opinion.answer is None for opinion in voted),
        "judge_failed_votes": sum(opinion.votes.count(None) for opinion in voted),
        "judge_agreement": sum(agreements) / len(agreements) if agreements else None,
        **{f"judge_{kind}": amount for kind, amount in sorted(spent.items())},
    }
