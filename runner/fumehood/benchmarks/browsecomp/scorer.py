"""BrowseComp and BrowseComp-Plus: a judged answer, and what it rests on.

Question and right answer are enciphered in the criteria, and the agent's answer in the evidence; they are
deciphered in memory, and nothing of them is returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fumehood.core.encryption import decipher, unveiled
from fumehood.core.errors import SpecError
from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.cited_answer import (
    CitedAnswer,
    answer_of,
    evidence_metrics,
    relevant_documents,
    seen_ids,
)
from fumehood.scorers.judges.confidence import read_confidence
from fumehood.scorers.judges.exact import RESPONSE
from fumehood.scorers.judges.question import Opinion, Question
from fumehood.scorers.judges.table import JUDGES
from fumehood.scorers.judges.verdicts import judged_score
from fumehood.scorers.native import task_metrics

JUDGED = "judged_answer"
"""``question`` and ``answer``, enciphered with ``canary``; ``judge`` names a rule that decides,
null for the run's judge."""
ASKS = (
    "Does the response give the right answer? Compare its final answer with the right one alone: another "
    "wording, a small rounding or more detail is right; a doubt, a choice of several or no answer is not."
)
GOLD_DOCUMENTS = "gold_documents"
"""Not a check: ``documents`` maps the ids of what holds the answer itself to how much it does."""


class BrowseComp:
    """Success is a judge's verdict; without a judge an answer is ungraded, and none is a failure."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return what can be said without asking anybody."""
        return self.score_with(task, gold, evidence, {})

    def questions(self, task: Task, gold: Gold, evidence: Evidence) -> Sequence[Question]:
        """Ask about the answer, where there is one and the suite names no judge of its own."""
        judged = _judged(gold)
        if judged is None or judged.get("judge") is not None:
            return ()
        plain = _plain_answer(judged, task, evidence)
        return () if plain is None else (_question(judged, plain),)

    def score_with(
        self, task: Task, gold: Gold, evidence: Evidence, opinions: Mapping[str, Opinion]
    ) -> Score:
        """Return the verdict, the native metrics, those of evidence, and the confidence that was stated."""
        judged = _judged(gold)
        if judged is None:
            return CitedAnswer().score(task, gold, evidence)
        plain = _plain_answer(judged, task, evidence)
        success = False if plain is None else _verdict(judged, plain, opinions)
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
        by = judged.get("judge") or ("unanswered" if plain is None else "answer")
        return judged_score({f"judged:{by}": success}, opinions.values(), metrics)


def _judged(gold: Gold) -> Mapping[str, Json] | None:
    return next((each for each in gold.criteria if each.get("op") == JUDGED), None)


def _plain_answer(judged: Mapping[str, Json], task: Task, evidence: Evidence) -> str | None:
    answer = answer_of(task, evidence)
    return None if answer is None else unveiled(answer, _text(judged, "canary"))


def _question(judged: Mapping[str, Json], response: str) -> Question:
    canary = _text(judged, "canary")
    asked, right = (decipher(_text(judged, part), canary) for part in ("question", "answer"))
    return Question(
        name=JUDGED,
        asks=f"{ASKS}\n\nThe question was: {asked}",
        texts={RESPONSE: response},
        right_answer=right,
    )


def _verdict(
    judged: Mapping[str, Json], response: str, opinions: Mapping[str, Opinion]
) -> bool | None:
    name = judged.get("judge")
    if name is None:
        answer = opinions[JUDGED].answer if JUDGED in opinions else None
    else:
        answer = JUDGES.load(str(name))().judge(_question(judged, response))
    return None if answer is None else answer == "yes"


def _documents(criterion: Mapping[str, Json]) -> list[str]:
    documents = criterion.get("documents")
    return list(documents) if isinstance(documents, dict) else []


def _text(criterion: Mapping[str, Json], name: str) -> str:
    value = criterion.get(name)
    if not isinstance(value, str):
        raise SpecError(f"criteria.{JUDGED}.{name}", "must be a text")
    return value
