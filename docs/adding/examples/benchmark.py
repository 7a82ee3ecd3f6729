"""Benchmark ``single``: one task, made from one text file."""

from pathlib import Path

from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.ledger import Budget
from fumehood.core.task import Case, Suite, Task


class Single:
    """Argument: ``PATH``, a text file; the agent must copy its content to ``/copy.txt``."""

    source = "your file"

    def load(self, argument: str) -> Suite:
        """Make the suite.

        Raises:
            InputError: the file cannot be read.
        """
        try:
            text = Path(argument).read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"{argument}: {error.strerror}") from None
        task = Task(
            task_id="copy",
            world="files",
            harness_mode="native",
            initial_state={"files": {"/original.txt": text}},
            seed=1,
            seats=(
                SeatSpec(instruction="Copy /original.txt to /copy.txt.", budget=Budget(calls=4)),
            ),
        )
        criterion = {"op": "map_value_equals", "path": "files", "key": "/copy.txt", "value": text}
        return Suite("single", (Case(task, Gold("native", (criterion,))),))
