"""The right answers. Only benchmarks, scorers and the orchestrator may import this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fumehood.core.json_values import Json


@dataclass(frozen=True, slots=True)
class Gold:
    """How one task is judged, and how it is proven solvable."""

    scorer: str
    """Name of the scorer that reads the criteria."""
    criteria: tuple[Mapping[str, Json], ...]
    """In the scorer's own terms."""
    solvable: bool | None = None
    """Whether the task can be solved; None where nobody has proven it. The right end of an unsolvable task is
    to give up."""
    oracle: tuple[Mapping[str, Json], ...] | None = None
    """Calls (and the ending) that solve the task, as the oracle agent reads them; None where unknown."""
