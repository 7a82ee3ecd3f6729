"""BrowseComp: the published CSV with the columns problem, answer and canary, as it is."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from fumehood.benchmarks.browsecomp.argument import read_argument
from fumehood.benchmarks.browsecomp.task import Question, case_of
from fumehood.benchmarks.questions.suite import snapshot_name
from fumehood.benchmarks.reading import Place, Problem, Unreadable
from fumehood.core.encryption import decipher
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.task import About, Suite

COLUMNS = ("problem", "answer", "canary")
ABOUT = About(
    licence="MIT (openai/simple-evals); the questions are not to be published in plain text",
    criterion="a judge says whether the answer is the right one; without a judge there is no verdict",
    judged="the submitted answer; what was read and cited is measured beside it",
)


class BrowseComp:
    """Argument: the file, and if wanted ``snapshot=FOLDER`` and ``judge=NAME``, parted by colons."""

    def load(self, argument: str) -> Suite:
        """Return the questions, each checked to be deciphered by its canary."""
        told = read_argument("browsecomp", argument)
        named = (
            None
            if told.snapshot is None
            else snapshot_name(told.snapshot, "fumehood snapshot build")
        )
        cases = tuple(case_of(question, named, told.judge) for question in _read(told.path))
        return Suite("browsecomp", cases, told.snapshot, ABOUT)

    def recognises(self, record: JsonObject) -> bool:
        """Recognise nothing: these are no lines of JSON."""
        return False


def _read(path: Path) -> Iterator[Question]:
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = csv.DictReader(stream)
            missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
            if missing:
                raise Unreadable(
                    Place(path, 1), Problem.INVALID_RECORD, f"has no column {missing[0]!r}"
                )
            for number, row in enumerate(rows, 1):
                yield _question(path, number, row)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise Unreadable(
            Place(path), Problem.INVALID_RECORD, f"is not CSV in UTF-8: {error}"
        ) from None


def _question(path: Path, number: int, row: dict[str, str]) -> Question:
    try:
        for name in ("problem", "answer"):
            decipher(row[name] or "", row["canary"] or "")
    except ValueError:
        why = f"{name} is not enciphered with the canary of its row"
        raise Unreadable(Place(path, number + 1), Problem.INVALID_RECORD, why) from None
    return Question(f"bc{number:04d}", row["canary"], row["problem"], row["answer"])
