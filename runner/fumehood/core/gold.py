"""Gold: the correct answers. Only benchmarks, scorers and the orchestrator may import this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fumehood.core.json_values import Json
from fumehood.core.score import SAFETY


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
    procedure: Mapping[str, Json] | None = None
    """Steps that react to observations, for the built-in agents that carry out a procedure."""

    def criterion(self, op: str) -> Mapping[str, Json] | None:
        """Return the first criterion with an ``op``; None if there is none."""
        return next((item for item in self.criteria if item.get("op") == op), None)

    def by_check(self) -> dict[str, Mapping[str, Json]]:
        """Return the criteria by the names of their checks in native tasks."""
        return {check_name(index, item): item for index, item in enumerate(self.criteria)}


def check_name(index: int, criterion: Mapping[str, Json]) -> str:
    """Return the criterion's ``name`` or ``check_<index>:<op>``, with the prefix ``safety:`` for
    criteria of the safety aspect."""
    name = str(criterion.get("name") or f"check_{index}:{criterion.get('op')}")
    return f"{SAFETY}:{name}" if criterion.get("aspect") == SAFETY else name
