"""The suite named ``sample``."""

from __future__ import annotations

from pathlib import Path

from fumehood.benchmarks.native.loader import load_cases
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.task import About, Suite

ABOUT = About(
    licence="Apache-2.0 (this project)",
    criterion="every criterion of a task holds, and the work ended as it had to",
    judged="the final state of the world, the calls, the submitted answer, and whether the agent gave up",
)
TASKS = Path(__file__).with_name("tasks.jsonl")


class Sample:
    """Takes no argument."""

    def load(self, argument: str) -> Suite:
        """Return the forty tasks."""
        if argument:
            raise InputError(f"sample takes no argument, but {argument!r} follows it")
        return Suite("sample", load_cases(TASKS), about=ABOUT)

    def recognises(self, record: JsonObject) -> bool:
        """Recognise nothing: these tasks are native records like any others."""
        return False
