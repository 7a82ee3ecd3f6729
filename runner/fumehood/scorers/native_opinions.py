"""The native criterion that no rule decides: a question about the answer, or about all that was done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fumehood.core.evidence import Evidence
from fumehood.core.json_values import Json
from fumehood.core.outcome import Finished
from fumehood.core.task import Task
from fumehood.scorers.check_names import check_name
from fumehood.scorers.criteria import Criterion
from fumehood.scorers.judges.question import YES_NO, Opinion, Question
from fumehood.scorers.judges.transcript import transcript_of

JUDGED = "judged"
"""``asks``, ``answers`` (yes and no), ``wants`` (yes), and ``looks_at``: ``answer`` or ``transcript``."""


def questions_of(
    criteria: Sequence[Criterion], task: Task, evidence: Evidence
) -> Iterator[Question]:
    """Yield what is to be asked about the criteria that need an opinion."""
    for index, criterion in enumerate(criteria):
        if criterion.get("op") == JUDGED:
            yield Question(
                name=check_name(index, criterion),
                asks=f"{criterion['asks']}\n\nThe agent's task was:\n{task.seats[0].instruction}",
                texts={_looks_at(criterion): _text(criterion, task, evidence)},
                answers=_answers(criterion),
            )


def verdicts_of(
    criteria: Sequence[Criterion], opinions: Mapping[str, Opinion]
) -> dict[str, bool | None]:
    """Return whether each criterion of opinion holds; None where nobody could tell."""
    verdicts: dict[str, bool | None] = {}
    for index, criterion in enumerate(criteria):
        if criterion.get("op") == JUDGED:
            name = check_name(index, criterion)
            opinion = opinions.get(name)
            said = None if opinion is None else opinion.answer
            verdicts[name] = None if said is None else said == criterion.get("wants", YES_NO[0])
    return verdicts


def _answers(criterion: Criterion) -> tuple[str, ...]:
    told: Json = criterion.get("answers")
    return tuple(str(each) for each in told) if isinstance(told, list) and told else YES_NO


def _looks_at(criterion: Criterion) -> str:
    return str(criterion.get("looks_at", "answer"))


def _text(criterion: Criterion, task: Task, evidence: Evidence) -> str:
    if _looks_at(criterion) == "transcript":
        return transcript_of(evidence)
    end = evidence.ends.get(task.seats[0].name)
    return end.answer if isinstance(end, Finished) else ""
