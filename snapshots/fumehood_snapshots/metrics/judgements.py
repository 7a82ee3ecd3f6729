"""Questions and relevance judgements, in the formats of TREC."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fumehood_snapshots.errors import SnapshotInputError

Judgements = Mapping[str, Mapping[str, int]]
"""Question → document → relevance; 0 means not relevant."""


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Return the judgements of a TREC qrels file: ``question 0 document relevance``, one per line.

    Raises:
        SnapshotInputError: the file does not exist, or a line has another form.
    """

    judgements: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        parts = line.split()
        if len(parts) != 4 or not parts[3].lstrip("-").isdecimal():
            raise SnapshotInputError(
                f"{path.name}:{number}: expected: question 0 document relevance"
            )
        judgements.setdefault(parts[0], {})[parts[2]] = int(parts[3])
    return judgements


def read_questions(path: Path) -> dict[str, str]:
    """Return the questions of a tab-separated file: ``question-id<TAB>text``, one per line.

    Raises:
        SnapshotInputError: the file does not exist, or a line has another form.
    """

    questions: dict[str, str] = {}
    for number, line in _lines(path):
        identity, tab, text = line.partition("\t")
        if not tab or not identity.strip() or not text.strip() or identity in questions:
            raise SnapshotInputError(
                f"{path.name}:{number}: expected a unique ID, a tab and a question"
            )
        questions[identity] = text.strip()
    return questions


def _lines(path: Path) -> list[tuple[int, str]]:
    if not path.is_file():
        raise SnapshotInputError(f"{path}: no such file")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise SnapshotInputError(f"{path}: not UTF-8 text") from error
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
