"""Every scorer there is."""

from __future__ import annotations

from collections.abc import Callable

from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.registry import Registry
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.judges.question import Ask, nobody
from fumehood.scorers.scorer import JudgedScorer, Scorer

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
        opinions = {
            question.name: ask(question) for question in scorer.questions(task, gold, evidence)
        }
        return scorer.score_with(task, gold, evidence, opinions)
    return scorer.score(task, gold, evidence)
