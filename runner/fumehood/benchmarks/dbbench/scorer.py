"""AgentBench's dbbench: the table as it was left, or the answer that was committed."""

from __future__ import annotations

from collections.abc import Sequence

from fumehood.benchmarks.dbbench.answer import digest_of_label, same_answer, tables_digest
from fumehood.core.errors import SpecError
from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json
from fumehood.core.outcome import Finished
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.criteria import Criterion
from fumehood.scorers.native import NativeScorer, task_metrics

ANSWER = "dbbench_answer"
"""``label`` lists the right values."""
TABLES = "dbbench_tables"
"""``md5`` is the digest of the task's own tables when all is done."""


class DbBench:
    """The original's two criteria; both need an answer, for without one the original judges nothing."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the verdict and the native metrics."""
        if not any(each.get("op") in (ANSWER, TABLES) for each in gold.criteria):
            return NativeScorer().score(task, gold, evidence)
        end = evidence.ends.get(task.seats[0].name)
        checks = {"end:answered": isinstance(end, Finished)}
        for index, criterion in enumerate(gold.criteria):
            answer = end.answer if isinstance(end, Finished) else ""
            checks[f"check_{index}:{criterion.get('op')}"] = _holds(
                index, criterion, task, evidence, answer
            )
        success = all(checks.values())
        return Score(success, checks, task_metrics(task, evidence, success))


def _holds(index: int, criterion: Criterion, task: Task, evidence: Evidence, answer: str) -> bool:
    match criterion:
        case {"op": "dbbench_answer", "label": [*label]} if all(
            isinstance(each, str) for each in label
        ):
            # The original's tool cannot be called without an answer, and would take an empty text for 0.
            return bool(answer.strip()) and same_answer(answer, [str(each) for each in label])
        case {"op": "dbbench_tables", "md5": str(digest)}:
            left = tables_digest(_tables(evidence.final_state.get("tables")), _wanted(task))
            return left == digest_of_label(digest)
    raise SpecError(
        f"criteria[{index}]", "must be dbbench_answer with label, or dbbench_tables with md5"
    )


def _wanted(task: Task) -> list[tuple[str, list[str]]]:
    return [
        (name, [str(column) for column in columns])
        for table in _tables(task.initial_state.get("tables"))
        if isinstance(table, dict)
        and isinstance(name := table.get("name"), str)
        and isinstance(columns := table.get("columns"), list)
    ]


def _tables(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list) else ()
