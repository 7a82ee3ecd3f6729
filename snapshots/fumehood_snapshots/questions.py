"""A set of questions on a snapshot, with relevance judgements and answers.

A folder holds ``questions.tsv``, ``qrels.txt`` and ``gold.jsonl``. A judgement of 2 means that the
document contains the answer, 1 that it leads to it. The gold is separate from the questions,
because the code that serves questions must not hold answers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from fumehood_snapshots.metrics.judgements import read_qrels, read_questions


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    """The answer to one question."""

    answer: str
    must_contain: tuple[str, ...]
    """A correct answer contains all of these, ignoring case."""

    def accepts(self, answer: str) -> bool:
        """Return whether an answer is correct."""
        folded = answer.casefold()
        return all(needed.casefold() in folded for needed in self.must_contain)


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions that are part of the package."""

    folder: Path

    def questions(self) -> dict[str, str]:
        """Return the questions by id."""
        return read_questions(self.folder / "questions.tsv")

    def judgements(self) -> dict[str, dict[str, int]]:
        """Return the judgements: question → document → 2 or 1."""
        return read_qrels(self.folder / "qrels.txt")

    def gold(self) -> dict[str, GoldAnswer]:
        """Return the answers by question."""
        lines = (self.folder / "gold.jsonl").read_text(encoding="utf-8").splitlines()
        return {
            record["id"]: GoldAnswer(record["answer"], tuple(record["must_contain"]))
            for record in map(json.loads, lines)
        }
