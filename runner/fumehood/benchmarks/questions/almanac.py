"""Ten questions on the almanac that comes along."""

from __future__ import annotations

from pathlib import Path

from fumehood.benchmarks.questions.suite import question_suite
from fumehood.core.errors import InputError, how_to_install
from fumehood.core.json_values import JsonObject
from fumehood.core.task import Suite


class Almanac:
    """Argument: the folder of the snapshot, ``almanac`` where none is given."""

    def load(self, argument: str) -> Suite:
        """Return the questions as a suite."""
        try:
            from fumehood_snapshots.almanac.benchmark import NAME, QUESTIONS
        except ModuleNotFoundError as error:
            raise InputError(f"{error.name} is missing: {how_to_install('snapshots')}") from None
        folder = argument or NAME
        command = f"fumehood snapshot almanac {folder}"
        return question_suite("almanac", QUESTIONS, Path(folder), command)

    def recognises(self, record: JsonObject) -> bool:
        """Recognise nothing: the questions come along."""
        return False
