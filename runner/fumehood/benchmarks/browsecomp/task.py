"""From an enciphered question to a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from fumehood.core.encryption import VEILED
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import Case, Task

SCORER = "browsecomp"
BUDGET = Budget(steps=200, calls=200, retries=50, answer_bytes=4_000_000)
K = 5
SNIPPET_CHARS = 2_000
"""About the 512 tokens that BrowseComp-Plus shows of a document."""
INSTRUCTION = (
    "Answer the question. Search and open pages until you know; cite the documents that your answer rests on "
    "by their ids in square brackets. End with these lines and nothing after them:\n"
    "Explanation: why, with citations\nExact Answer: the answer, as short as it can be\n"
    "Confidence: how sure you are, from 0% to 100%\n\nQuestion: {question}"
)


@dataclass(frozen=True, slots=True)
class Question:
    """One question as it is kept."""

    identity: str
    canary: str
    question: str
    """Enciphered with the canary."""
    answer: str
    """Enciphered with the canary."""
    evidence: Mapping[str, int] = field(default_factory=dict)
    """Documents that lead to the answer, with their grades."""
    golds: Mapping[str, int] = field(default_factory=dict)
    """Documents that hold it."""


def case_of(question: Question, snapshot: JsonObject | None, judge: str | None) -> Case:
    """Return the question as a task and its gold."""
    state: JsonObject = {"canary": question.canary, "question": question.question, "k": K}
    state["snippet_chars"] = SNIPPET_CHARS
    if snapshot is not None:
        state["snapshot"] = dict(snapshot)
    task = Task(
        task_id=question.identity,
        world="search",
        profile=VEILED,
        initial_state=state,
        fault_plan=(),
        seed=int.from_bytes(sha256(question.identity.encode()).digest()[:4], "big"),
        seats=(SeatSpec(instruction=INSTRUCTION, budget=BUDGET),),
        tags={},
    )
    criteria: tuple[JsonObject, ...] = (
        {
            "op": "judged_answer",
            "question": question.question,
            "answer": question.answer,
            "canary": question.canary,
            "judge": judge,
        },
        {"op": "relevant", "documents": dict(question.evidence)},
        {"op": "gold_documents", "documents": dict(question.golds)},
    )
    # No oracle: its calls would hold the question, and they are handed over in a file.
    return Case(task, Gold(SCORER, criteria, solvable=True))
