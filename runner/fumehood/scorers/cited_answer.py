"""An answer with citations: right or wrong by rule, and what it rests on.

Ids in square brackets are citations. Documents that a search returned or that were opened count as seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from fumehood.core.errors import SpecError
from fumehood.core.evidence import Evidence, Exchange
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject, json_bytes
from fumehood.core.outcome import Finished
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.criteria import Criterion
from fumehood.scorers.native import NativeScorer

CITATION = re.compile(r"[\[【]([^\[\]【】\s][^\[\]【】]*)[\]】]")
RELEVANT = "relevant"
"""Not a check: ``documents`` maps the ids of what is relevant to how much it is."""
MENTIONS = "answer_mentions"
"""The answer has every one of ``values`` in it, whatever their case, and at most ``max_words`` words."""
OWN = frozenset({RELEVANT, MENTIONS})


class CitedAnswer:
    """The native scorer's criteria, one for what an answer mentions, and measures of what was read."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return checks, the native metrics and those of evidence."""
        answer = answer_of(task, evidence)
        checks = {
            f"check_{index}:{MENTIONS}": _mentions(index, criterion, answer)
            for index, criterion in enumerate(gold.criteria)
            if criterion.get("op") == MENTIONS
        }
        others = tuple(each for each in gold.criteria if each.get("op") not in OWN)
        native = NativeScorer().score(task, Gold(gold.scorer, others, gold.solvable), evidence)
        checks.update(native.checks)
        judged = any(each.get("op") != RELEVANT for each in gold.criteria)
        metrics = {
            **native.metrics,
            **evidence_metrics(relevant_documents(gold.criteria), evidence, answer),
        }
        return Score(judged and all(checks.values()), checks, metrics)


def answer_of(task: Task, evidence: Evidence) -> str | None:
    """Return what the first seat submitted; None where it did not."""
    end = evidence.ends.get(task.seats[0].name)
    return end.answer if isinstance(end, Finished) else None


def relevant_documents(criteria: Sequence[Criterion]) -> dict[str, int]:
    """Return the relevant documents that the criteria name, each with its grade above 0."""
    found: dict[str, int] = {}
    for criterion in criteria:
        documents = criterion.get("documents")
        if criterion.get("op") == RELEVANT and isinstance(documents, dict):
            found |= {
                name: grade
                for name, grade in documents.items()
                if isinstance(grade, int) and grade > 0
            }
    return found


def evidence_metrics(
    relevant: Mapping[str, int], evidence: Evidence, answer: str | None
) -> JsonObject:
    """Return what was seen and cited, against what is relevant.

    ``evidence_recall`` is the share of the relevant documents that were seen; ``citation_precision`` the
    share of the cited that are relevant, None where nothing is cited; ``citation_recall`` the share of the
    relevant that are cited.
    """
    wanted = set(relevant)
    seen = seen_ids(evidence)
    cited = set(citations(answer or ""))
    answers = [call.output for call in evidence.exchanges if call.output is not None]
    return {
        "searches": sum(call.tool_name == "search" for call in evidence.exchanges),
        "pages_opened": sum(
            call.tool_name != "search" and call.failure is None for call in evidence.exchanges
        ),
        "answer_bytes": sum(map(json_bytes, answers)),
        "evidence_recall": _share(seen & wanted, wanted),
        "citation_precision": _share(cited & wanted, cited),
        "citation_recall": _share(cited & wanted, wanted),
    }


def seen_ids(evidence: Evidence) -> set[str]:
    """Return the ids of all documents that were shown."""
    return {name for call in evidence.exchanges for name in seen_in(call)}


def seen_in(call: Exchange) -> Iterable[str]:
    """Yield the ids of the documents that an answer shows."""
    output = call.output or {}
    results = output.get("results")
    for shown in results if isinstance(results, list) else [output]:
        name = shown.get("id") if isinstance(shown, dict) else None
        if isinstance(name, str):
            yield name


def citations(answer: str) -> list[str]:
    """Return the ids that an answer names in brackets, several in one pair parted by commas."""
    return [name.strip() for group in CITATION.findall(answer) for name in group.split(",")]


def _share(part: set[str], whole: set[str]) -> float | None:
    return len(part) / len(whole) if whole else None


def _mentions(index: int, criterion: Criterion, answer: str | None) -> bool:
    values: Json = criterion.get("values")
    most = criterion.get("max_words")
    if not isinstance(values, list) or not values:
        raise SpecError(f"criteria[{index}].values", "must be a list of texts")
    if answer is None or (isinstance(most, int) and len(answer.split()) > most):
        return False
    folded = answer.casefold()
    return all(str(value).casefold() in folded for value in values)
