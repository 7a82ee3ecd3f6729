"""What a benchmark is."""

from __future__ import annotations

from typing import Protocol

from fumehood.core.json_values import JsonObject
from fumehood.core.task import Suite


class Benchmark(Protocol):
    """A place where tasks come from."""

    def load(self, argument: str) -> Suite:
        """Return the tasks that ``argument`` names, in order, each with its gold.

        Args:
            argument: what follows ``NAME:`` in the suite argument of the command line, such as a path;
                empty where nothing follows.

        Raises:
            InputError: the argument or something it leads to cannot be used; the line names file, line
                and field.
        """
        ...

    def recognises(self, record: JsonObject) -> bool:
        """Tell whether ``record``, the first of a file, is in a format of this benchmark.

        It need not be valid: a record with a mistake is to be loaded and refused by its own benchmark.
        """
        ...
