"""Gold: the correct answers. Only benchmarks, scorers and the orchestrator may import this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fumehood.core.json_values import Json


@dataclass(frozen=True, slots=True)
class Gold:
    """How one task is scored, and the proof that it is solvable."""

    scorer: str
    """Name of the scorer that reads the criteria."""
    criteria: tuple[Mapping[str, Json], ...]
    """Criteria of the scorer."""
    solvable: bool | None = None
    """Whether the task can be solved; None if unknown. The correct end of an unsolvable task is to
    give up."""
    oracle: tuple[Mapping[str, Json], ...] | None = None
    """Calls and the end that solve the task; None if unknown."""

    def criterion(self, op: str) -> Mapping[str, Json] | None:
        """Return the first criterion with an ``op``; None if there is none."""
        return next((item for item in self.criteria if item.get("op") == op), None)
