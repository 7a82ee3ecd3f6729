"""Sixty questions on Python's own documentation."""

from __future__ import annotations

from pathlib import Path

from fumehood.benchmarks.questions.suite import question_suite
from fumehood.core.errors import InputError, how_to_install
from fumehood.core.json_values import JsonObject
from fumehood.core.task import Suite


class PythonDocs:
    """Argument: the folder of the snapshot, ``python-doc`` where none is given."""

    def load(self, argument: str) -> Suite:
        """Return the questions as a suite."""
        try:
            from fumehood_snapshots.pythondoc.benchmark import NAME, QUESTIONS
        except ModuleNotFoundError as error:
            raise InputError(f"{error.name} is missing: {how_to_install('snapshots')}") from None
        folder = argument or NAME
        command = f"fumehood snapshot python-doc {folder} (needs Debian's package python3.11-doc)"
        return question_suite("python-docs", QUESTIONS, Path(folder), command)

    def recognises(self, record: JsonObject) -> bool:
        """Recognise nothing: the questions come along."""
        return False
