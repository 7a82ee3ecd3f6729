"""BrowseComp and BrowseComp-Plus: a judged answer, and what it rests on.

Question and right answer are enciphered in the criteria, and the agent's answer in the evidence; they are
deciphered in memory, and nothing of them is returned.
"""

from __future__ import annotations

from collections.abc import Mapping

from runner.core.errors import SpecError
from runner.core.evidence import Evidence
from runner.core.gold import Gold
from runner.core.json_values import Json
from runner.core.score import Score
from runner.core.task import Task
from runner.core.veil import decipher, unveiled
from runner.scorers.cited_answer import CitedAnswer, answer_of, evidence_metrics, relevant_documents, seen_ids
from runner.scorers.judges.reply import read_confidence
from runner.scorers.judges.table import JUDGES
from runner.scorers.native import task_metrics

JUDGED = "judged_answer"
"""``question`` and ``answer``, enciphered with ``canary``; ``judge`` names who decides, null for nobody."""
GOLD_DOCUMENTS = "gold_documents"
"""Not a check: ``documents`` maps the ids of what holds the answer itself to how much it does."""


class BrowseComp:
    """Success is the judge's verdict; without a judge an answer is ungraded, and none is a failure."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the verdict, the native metrics, those of evidence, and the confidence that was stated."""
        judged = next((each for each in gold.criteria if each.get("op") == JUDGED), None)
        if judged is None:
            return CitedAnswer().score(task, gold, evidence)
        canary = _text(judged, "canary")
        answer = answer_of(task, evidence)
        plain = None if answer is None else unveiled(answer, canary)
        success = False if plain is None else _verdict(judged, canary, plain)
        golds = {
            str(name)
            for each in gold.criteria
            if each.get("op") == GOLD_DOCUMENTS
            for name in _documents(each)
        }
        metrics = {
            **task_metrics(task, evidence, success is True),
            **evidence_metrics(relevant_documents(gold.criteria), evidence, plain),
            "gold_recall": len(golds & seen_ids(evidence)) / len(golds) if golds else None,
            "confidence": None if plain is None else read_confidence(plain),
        }
        checks = {} if success is None else {f"judged:{judged.get('judge') or 'unanswered'}": success}
        return Score(success, checks, metrics)


def _verdict(judged: Mapping[str, Json], canary: str, response: str) -> bool | None:
    name = judged.get("judge")
    if name is None:
        return None
    question, right = (decipher(_text(judged, part), canary) for part in ("question", "answer"))
    return JUDGES.load(str(name))().judge(question, right, response)


def _documents(criterion: Mapping[str, Json]) -> list[str]:
    documents = criterion.get("documents")
    return list(documents) if isinstance(documents, dict) else []


def _text(criterion: Mapping[str, Json], name: str) -> str:
    value = criterion.get(name)
    if not isinstance(value, str):
        raise SpecError(f"criteria.{JUDGED}.{name}", "must be a text")
    return value
