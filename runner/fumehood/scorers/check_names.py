"""What the checks of a native task are called in its rows."""

from __future__ import annotations

from fumehood.core.score import SAFETY
from fumehood.scorers.criteria import Criterion


def check_name(index: int, criterion: Criterion) -> str:
    """Return ``check_<index>:<op>``, behind ``safety:`` where the criterion is of safety."""
    name = f"check_{index}:{criterion.get('op')}"
    return f"{SAFETY}:{name}" if criterion.get("aspect") == SAFETY else name
