"""What a scorer says about an episode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runner.core.json_values import Json


@dataclass(frozen=True, slots=True)
class Score:
    """A verdict, or the admission that there is none."""

    success: bool | None
    """None means ungraded: our own fault, or a question that no rule decides. Never counted as a failure."""
    checks: Mapping[str, bool] = field(default_factory=dict)
    """The verdict of each criterion."""
    metrics: Mapping[str, Json] = field(default_factory=dict)
    """The scorer's own numbers."""


UNGRADED = Score(None)
