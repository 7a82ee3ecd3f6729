"""Loads the sample suite: forty native tasks, ten per world, with every fault family; some are
unsolvable."""

from __future__ import annotations

from pathlib import Path

from fumehood.benchmarks.native.tasks import CRITERION, SCORED_ON, load_cases
from fumehood.core.errors import InputError
from fumehood.core.task import About, Suite

ABOUT = About(licence="Apache-2.0 (this project)", criterion=CRITERION, scored_on=SCORED_ON)
TASKS = Path(__file__).with_name("tasks.jsonl")


class Sample:
    """Loads the sample suite. It takes no argument."""

    source = "this project"

    def load(self, argument: str) -> Suite:
        """Return the forty tasks."""
        if argument:
            raise InputError(f"sample takes no argument; remove {argument!r}")
        return Suite("sample", load_cases(TASKS), about=ABOUT)
