"""A set of questions on a snapshot: what to ask, where the answer stands, and what it is.

A folder holds ``questions.tsv``, ``qrels.txt`` and ``gold.jsonl``. A judgement of 2 says that the document
holds the answer, 1 that it leads there. The gold is apart from the questions, because whoever serves
questions must not hold answers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from fumehood_snapshots.metrics.judgements import read_qrels, read_questions


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    """What the answer to one question is."""

    answer: str
    must_contain: tuple[str, ...]
    """An answer is right if it contains all of these, whatever their case."""

    def accepts(self, answer: str) -> bool:
        """Return whether an answer is right."""
        folded = answer.casefold()
        return all(needed.casefold() in folded for needed in self.must_contain)


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions that come with the program."""

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
