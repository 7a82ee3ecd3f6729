"""Scores answers of the knowledge graph as sets."""

from __future__ import annotations

from typing import Any

from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.native import NativeScorer, task_metrics

OP = "answer_set"


class KnowledgeGraph:
    """Scorer of the knowledge graph: success is the exact set of answers."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the score, with F1 as a metric. Source: ``task.py`` of the original."""
        criterion: Any = gold.criterion(OP)
        if criterion is None:
            return NativeScorer().score(task, gold, evidence)
        right: set[str] = set(criterion["answers"])
        answer: Any = evidence.final_state.get("answer")
        given: set[str] = set(answer or ())
        success = answer is not None and given == right
        common = len(right & given)
        f1 = 2 * common / (len(right) + len(given)) if common else 0.0
        metrics = {**task_metrics(task, evidence, success), "f1": f1}
        return Score(success, {OP: success}, metrics)
