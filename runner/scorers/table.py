"""Every scorer there is."""

from __future__ import annotations

from collections.abc import Callable

from runner.core.evidence import Evidence
from runner.core.gold import Gold
from runner.core.registry import Registry
from runner.core.score import Score
from runner.core.task import Task
from runner.scorers.judges.question import Ask, nobody
from runner.scorers.scorer import JudgedScorer, Scorer

SCORERS: Registry[Callable[[], Scorer]] = Registry(
    "scorer",
    {
        "agentdojo": "runner.scorers.agentdojo:AgentDojo",
        "bfcl": "runner.scorers.bfcl:Bfcl",
        "browsecomp": "runner.scorers.browsecomp:BrowseComp",
        "cited_answer": "runner.scorers.cited_answer:CitedAnswer",
        "dbbench": "runner.scorers.dbbench:DbBench",
        "marble": "runner.scorers.marble:Marble",
        "native": "runner.scorers.native:NativeScorer",
        "safetybench": "runner.scorers.safetybench:SafetyBench",
        "tau2": "runner.scorers.tau2:Tau2",
        "taubench": "runner.scorers.taubench:TauBench",
        "toolmisuse": "runner.scorers.toolmisuse:ToolMisuseScorer",
    },
)


def score_evidence(task: Task, gold: Gold, evidence: Evidence, ask: Ask = nobody) -> Score:
    """Return what the scorer says that the gold names.

    Args:
        task: that was attempted.
        gold: of the task.
        evidence: of the attempt.
        ask: gets questions answered that no rule decides.

    Raises:
        InputError: there is no such scorer.
        SpecError: a criterion cannot be evaluated at all.
    """
    scorer = SCORERS.load(gold.scorer)()
    if isinstance(scorer, JudgedScorer):
        opinions = {question.name: ask(question) for question in scorer.questions(task, gold, evidence)}
        return scorer.score_with(task, gold, evidence, opinions)
    return scorer.score(task, gold, evidence)
