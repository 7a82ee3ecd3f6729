"""Sixty questions on Python's documentation: what to ask, where the answer stands, and what it is.

``questions.tsv``, ``qrels.txt`` and ``gold.jsonl`` lie beside this file in ``questions/``. A judgement of 2
says that the document holds the answer, 1 that it leads there. The gold is apart from the questions, because
whoever serves questions must not hold answers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from snapshots.build.options import BuildOptions, Pace
from snapshots.build.pipeline import build_snapshot
from snapshots.build.progress import Progress, silent
from snapshots.format.manifest import Manifest
from snapshots.metrics.judgements import read_qrels, read_questions
from snapshots.pythondoc.source import INSTALLED, LICENCE, PythonDocs

FOLDER = Path(__file__).parent / "questions"


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


def build_python_docs(
    out: Path, root: Path = INSTALLED, pace: Pace | None = None, progress: Progress = silent
) -> Manifest:
    """Build the snapshot from the installed package.

    Args:
        out: the folder to make.
        root: where the package lies.
        pace: workers and sizes.
        progress: told of each stage.

    Raises:
        SnapshotInputError: the package is not installed, or ``out`` exists.
    """
    # Sections are cut out of their pages before, so nothing is left to be told apart from the main text.
    options = BuildOptions(name="python-doc", extractor="whole-page", licences=(LICENCE,))
    return build_snapshot([PythonDocs(root)], out, options, pace, progress)


def python_questions() -> dict[str, str]:
    """Return the questions by id."""
    return read_questions(FOLDER / "questions.tsv")


def python_judgements() -> dict[str, dict[str, int]]:
    """Return the judgements: question → document → 2 or 1."""
    return read_qrels(FOLDER / "qrels.txt")


def python_gold() -> dict[str, GoldAnswer]:
    """Return the answers by question."""
    lines = (FOLDER / "gold.jsonl").read_text(encoding="utf-8").splitlines()
    return {
        record["id"]: GoldAnswer(record["answer"], tuple(record["must_contain"]))
        for record in map(json.loads, lines)
    }
