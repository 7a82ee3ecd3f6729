"""Every scorer there is."""

from __future__ import annotations

from collections.abc import Callable

from runner.core.evidence import Evidence
from runner.core.gold import Gold
from runner.core.registry import Registry
from runner.core.score import Score
from runner.core.task import Task
from runner.scorers.scorer import Scorer

SCORERS: Registry[Callable[[], Scorer]] = Registry(
    "scorer",
    {
        "agentdojo": "runner.scorers.agentdojo:AgentDojo",
        "bfcl": "runner.scorers.bfcl:Bfcl",
        "browsecomp": "runner.scorers.browsecomp:BrowseComp",
        "cited_answer": "runner.scorers.cited_answer:CitedAnswer",
        "dbbench": "runner.scorers.dbbench:DbBench",
        "native": "runner.scorers.native:NativeScorer",
        "tau2": "runner.scorers.tau2:Tau2",
        "toolmisuse": "runner.scorers.toolmisuse:ToolMisuseScorer",
    },
)


def score_evidence(task: Task, gold: Gold, evidence: Evidence) -> Score:
    """Return what the scorer says that the gold names.

    Raises:
        InputError: there is no such scorer.
        SpecError: a criterion cannot be evaluated at all.
    """
    return SCORERS.load(gold.scorer)().score(task, gold, evidence)
