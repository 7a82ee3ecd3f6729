"""Scores answers of BrowseComp and BrowseComp-Plus with a judge.

The criteria contain the question and the correct answer encrypted, and the evidence contains the
agent's answer encrypted. They are decrypted in memory only; the score contains no plain text of
them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fumehood.core.encryption import decrypt, decrypt_text
from fumehood.core.errors import SpecError
from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.cited_answer import (
    CitedAnswer,
    answer_of,
    evidence_metrics,
    relevant_documents,
    seen_ids,
)
from fumehood.scorers.judges.question import Opinion, Question, judged_score
from fumehood.scorers.judges.registry import JUDGES
from fumehood.scorers.judges.rules import RESPONSE
from fumehood.scorers.native import task_metrics

JUDGED = "judged_answer"
"""Keys: ``question`` and ``answer``, encrypted with ``canary``, ``judge``: the name of a rule
judge, or null for the judge of the run, and ``grader``: the published grader's prompt, or null."""
FENCED = "judged_answer_fenced"
"""Name of this project's question about the answer, if the published grader decides success."""
ASKS = (
    "Does the response give the correct answer? Compare only its final answer with the correct "
    "answer. Accept a different wording, slight rounding or additional detail. Do not accept an "
    "uncertain answer, several alternative answers, or no answer."
)
GOLD_DOCUMENTS = "gold_documents"
"""Not a check: ``documents`` maps the IDs of documents that contain the answer to their grades."""
_CONFIDENCE = re.compile(
    r"^[^\w\n]*confidence[^\w:]*:\W*(\d{1,3}(?:\.\d+)?)", re.IGNORECASE | re.MULTILINE
)
"""An agent wrote the text, so the time must be linear: no two neighbouring parts match the same
character."""


_BRACKETS = (re.compile(r"\[[^\[\]]*\]"), re.compile(r"【[^【】]*】"))
_NUMBER = re.compile(r"\d+")


class BrowseComp:
    """Scores by the opinion of a judge. Without a judge an answer is ungraded; a missing answer is
    a failure."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the score without opinions."""
        return self.score_with(task, gold, evidence, {})

    def questions(self, task: Task, gold: Gold, evidence: Evidence) -> Sequence[Question]:
        """Return the question about the answer, if there is one and the suite argument names no
        rule judge."""
        judged = _judged(gold)
        if judged is None or judged.get("judge") is not None:
            return ()
        plain = _plain_answer(judged, task, evidence)
        if plain is None:
            return ()
        own = _question(judged, plain)
        published = _published_prompt(judged, plain)
        if published is None:
            return (own,)
        return (replace(own, published=published), replace(own, name=FENCED))

    def score_with(
        self, task: Task, gold: Gold, evidence: Evidence, opinions: Mapping[str, Opinion]
    ) -> Score:
        """Return success, the native metrics, the evidence metrics and the stated confidence."""
        judged = _judged(gold)
        if judged is None:
            return CitedAnswer().score(task, gold, evidence)
        plain = _plain_answer(judged, task, evidence)
        success = False if plain is None else _is_correct(judged, plain, opinions)
        golds = {
            str(name)
            for criterion in gold.criteria
            if criterion.get("op") == GOLD_DOCUMENTS
            for name in _documents(criterion)
        }
        relevant = relevant_documents(gold.criteria)
        own = evidence_metrics(relevant, evidence, plain)
        confidence = None if plain is None else read_confidence(plain)
        metrics = {
            **task_metrics(task, evidence, success is True),
            **own,
            **{f"{name}_of_ids": own[name] for name in ("citation_precision", "citation_recall")},
            **published_citation_metrics(set(relevant), plain),
            "gold_recall": len(golds & seen_ids(evidence)) / len(golds) if golds else None,
            "confidence": confidence,
            # Source: the published grader assumes 100 % where the answer states no confidence.
            "confidence_as_published": 1.0 if plain and confidence is None else confidence,
        }
        if FENCED in opinions:
            fenced = opinions[FENCED].answer
            metrics["correct_by_fenced_judge"] = None if fenced is None else fenced == "yes"
        by = judged.get("judge") or ("unanswered" if plain is None else "answer")
        return judged_score({f"judged:{by}": success}, opinions.values(), metrics)


def _judged(gold: Gold) -> Mapping[str, Json] | None:
    return next((entry for entry in gold.criteria if entry.get("op") == JUDGED), None)


def _plain_answer(judged: Mapping[str, Json], task: Task, evidence: Evidence) -> str | None:
    answer = answer_of(task, evidence)
    return None if answer is None else decrypt_text(answer, _text(judged, "canary"))


def _question(judged: Mapping[str, Json], response: str) -> Question:
    canary = _text(judged, "canary")
    question, right = (decrypt(_text(judged, part), canary) for part in ("question", "answer"))
    return Question(
        name=JUDGED,
        asks=f"{ASKS}\n\nThe question was: {question}",
        texts={RESPONSE: response},
        right_answer=right,
    )


def _published_prompt(judged: Mapping[str, Json], response: str) -> str | None:
    template = judged.get("grader")
    if not isinstance(template, str):
        return None
    canary = _text(judged, "canary")
    return template.format(
        question=decrypt(_text(judged, "question"), canary),
        response=response,
        correct_answer=decrypt(_text(judged, "answer"), canary),
    )


def published_citations(answer: str) -> set[str]:
    """Return the numbers in square brackets of both kinds.

    Source: ``extract_citations_from_response`` of BrowseComp-Plus.
    """
    groups = (group for pattern in _BRACKETS for group in pattern.findall(answer))
    return {number for group in groups for number in _NUMBER.findall(group)}


def published_citation_metrics(relevant: set[str], answer: str | None) -> JsonObject:
    """Return precision and recall of the citations; both are None without citations.

    Source: ``compute_citation_metrics`` of BrowseComp-Plus, and its averages over the answers with
    citations.
    """
    cited = published_citations(answer or "")
    right = len(cited & relevant)
    return {
        "citation_precision": right / len(cited) if cited else None,
        "citation_recall": (right / len(relevant) if relevant else 0.0) if cited else None,
    }


def _is_correct(
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
        raise SpecError(f"criteria.{JUDGED}.{name}", "must be a string")
    return value


def read_confidence(text: str) -> float | None:
    """Return the stated confidence as a share between 0 and 1; None if the text states none."""
    percentages = _CONFIDENCE.findall(text)
    share = float(percentages[-1]) / 100 if percentages else None
    return share if share is not None and share <= 1 else None
