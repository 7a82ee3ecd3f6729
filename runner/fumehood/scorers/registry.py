"""The protocols of scorers, the registry of all scorers, and the function that scores an
episode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.registry import Registry
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.judges.question import Ask, Opinion, Question, no_judge


class Scorer(Protocol):
    """Scores a finished episode from its evidence."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the score.

        Args:
            task: that was attempted.
            gold: answers and criteria of the task.
            evidence: of the attempt, read from its trace.

        Raises:
            SpecError: a criterion is malformed and cannot be evaluated.
        """
        ...


@runtime_checkable
class JudgedScorer(Protocol):
    """A scorer that needs a judge for some criteria.

    The scorer states the questions; the caller asks the judge and passes the opinions back. Its
    ``score`` is the score without any opinion.
    """

    def questions(self, task: Task, gold: Gold, evidence: Evidence) -> Sequence[Question]:
        """Return the questions for a judge; empty if the score does not depend on them."""
        ...

    def score_with(
        self, task: Task, gold: Gold, evidence: Evidence, opinions: Mapping[str, Opinion]
    ) -> Score:
        """Return the score.

        Args:
            task: that was attempted.
            gold: answers and criteria of the task.
            evidence: of the attempt.
            opinions: question name → opinion.
        """
        ...


SCORERS: Registry[Callable[[], Scorer]] = Registry(
    "scorer",
    {
        "agentdojo": "fumehood.benchmarks.agentdojo.scorer:AgentDojo",
        "bfcl": "fumehood.benchmarks.bfcl.scorer:Bfcl",
        "browsecomp": "fumehood.benchmarks.browsecomp.scorer:BrowseComp",
        "cited_answer": "fumehood.scorers.cited_answer:CitedAnswer",
        "dbbench": "fumehood.benchmarks.dbbench.scorer:DbBench",
        "marble": "fumehood.benchmarks.marble.scorer:Marble",
        "native": "fumehood.scorers.native:NativeScorer",
        "safetybench": "fumehood.benchmarks.safetybench.scorer:SafetyBench",
        "tau2": "fumehood.benchmarks.tau2.scorer:Tau2",
        "taubench": "fumehood.benchmarks.taubench.scorer:TauBench",
        "toolmisuse": "fumehood.benchmarks.toolmisuse.scorer:ToolMisuseScorer",
    },
)


def score_evidence(task: Task, gold: Gold, evidence: Evidence, ask: Ask = no_judge) -> Score:
    """Return the score by the scorer that the gold names.

    Args:
        task: that was attempted.
        gold: answers and criteria of the task.
        evidence: of the attempt.
        ask: answers the questions that need a judge.

    Raises:
        InputError: there is no such scorer.
        SpecError: a criterion is malformed and cannot be evaluated.
    """
    scorer = SCORERS.load(gold.scorer)()
    if isinstance(scorer, JudgedScorer):
        opinions = {
            question.name: ask(question) for question in scorer.questions(task, gold, evidence)
        }
        return scorer.score_with(task, gold, evidence, opinions)
    return scorer.score(task, gold, evidence)
