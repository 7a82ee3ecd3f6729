"""Scores answers with citations: the expected values, and metrics of the documents seen and cited.

IDs in square brackets are citations. Documents in search results and opened documents count as
seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from fumehood.core.errors import SpecError
from fumehood.core.evidence import AnsweredCall, Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject, json_bytes
from fumehood.core.outcome import Finished
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.answer_text import contains_words, has_at_most, without_marks
from fumehood.scorers.criteria import Criterion
from fumehood.scorers.native import NativeScorer

CITATION = re.compile(r"[\[【]([^\[\]【】\s][^\[\]【】]*)[\]】]")
RELEVANT = "relevant"
"""Not a check: ``documents`` maps the IDs of relevant documents to their grades."""
MENTIONS = "answer_mentions"
"""The answer contains all ``values``, ignoring case, and has at most ``max_words`` words."""
OPERATIONS = frozenset({RELEVANT, MENTIONS})


class CitedAnswer:
    """Adds the criterion ``answer_mentions`` and metrics of evidence to the native scorer."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the checks, the native metrics and the evidence metrics."""
        answer = answer_of(task, evidence)
        checks = {
            f"check_{index}:{MENTIONS}": _mentions(index, criterion, answer)
            for index, criterion in enumerate(gold.criteria)
            if criterion.get("op") == MENTIONS
        }
        other_criteria = tuple(
            entry for entry in gold.criteria if entry.get("op") not in OPERATIONS
        )
        native = NativeScorer().score(
            task, Gold(gold.scorer, other_criteria, gold.solvable), evidence
        )
        checks.update(native.checks)
        has_checks = any(entry.get("op") != RELEVANT for entry in gold.criteria)
        metrics = {
            **native.metrics,
            **evidence_metrics(relevant_documents(gold.criteria), evidence, answer),
        }
        return Score(has_checks and all(checks.values()), checks, metrics)


def answer_of(task: Task, evidence: Evidence) -> str | None:
    """Return the answer of the first seat; None if it submitted none."""
    end = evidence.ends.get(task.seats[0].name)
    return end.answer if isinstance(end, Finished) else None


def relevant_documents(criteria: Sequence[Criterion]) -> dict[str, int]:
    """Return the documents with a grade above 0 that the criteria name, with their grades."""
    grades: dict[str, int] = {}
    for criterion in criteria:
        documents = criterion.get("documents")
        if criterion.get("op") == RELEVANT and isinstance(documents, dict):
            grades |= {
                name: grade
                for name, grade in documents.items()
                if isinstance(grade, int) and grade > 0
            }
    return grades


def evidence_metrics(
    relevant: Mapping[str, int], evidence: Evidence, answer: str | None
) -> JsonObject:
    """Return metrics of the documents that were seen and cited.

    ``evidence_recall`` is the share of relevant documents that were seen, ``citation_precision``
    the share of cited documents that are relevant (None without citations), and
    ``citation_recall`` the share of relevant documents that were cited.

    Args:
        relevant: document ID → grade.
        evidence: of the attempt.
        answer: submitted; None if there is none.
    """
    relevant_ids = set(relevant)
    seen_documents = seen_ids(evidence)
    cited = set(citations(answer or ""))
    answers = [call.output for call in evidence.calls if call.output is not None]
    return {
        "searches": sum(call.tool_name == "search" for call in evidence.calls),
        "pages_opened": sum(
            call.tool_name != "search" and call.failure is None for call in evidence.calls
        ),
        "answer_bytes": sum(map(json_bytes, answers)),
        "evidence_recall": _share(seen_documents & relevant_ids, relevant_ids),
        "citation_precision": _share(cited & relevant_ids, cited),
        "citation_recall": _share(cited & relevant_ids, relevant_ids),
    }


def seen_ids(evidence: Evidence) -> set[str]:
    """Return the IDs of all documents that the agent saw."""
    return {name for call in evidence.calls for name in seen_in(call)}


def seen_in(call: AnsweredCall) -> Iterable[str]:
    """Yield the IDs of the documents in a result."""
    output = call.output or {}
    results = output.get("results")
    for shown in results if isinstance(results, list) else [output]:
        name = shown.get("id") if isinstance(shown, dict) else None
        if isinstance(name, str):
            yield name


def citations(answer: str) -> list[str]:
    """Return the cited IDs; one pair of brackets may contain several, separated by commas."""
    return [name.strip() for group in CITATION.findall(answer) for name in group.split(",")]


def _share(part: set[str], whole: set[str]) -> float | None:
    return len(part) / len(whole) if whole else None


def _mentions(index: int, criterion: Criterion, answer: str | None) -> bool:
    values: Json = criterion.get("values")
    words_max = criterion.get("max_words")
    if not isinstance(values, list) or not values:
        raise SpecError(f"criteria[{index}].values", "must be a list of strings")
    if answer is None:
        return False
    folded, wanted = answer.casefold(), [str(value).casefold() for value in values]
    if isinstance(words_max, int) and not has_at_most(folded, words_max, wanted):
        return False
    text = without_marks(folded)
    return all(
        contains_words(text, without_marks(value), in_names=True, has_plural=True)
        for value in wanted
    )
