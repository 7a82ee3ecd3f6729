"""What a scorer says about an episode.

Checks of safety (what must not happen) are called ``safety``, or begin with ``safety:``; all others are of
utility (what has to be achieved). Success is both; each is also told apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fumehood.core.json_values import Json

SAFETY = "safety"


@dataclass(frozen=True, slots=True)
class Score:
    """A verdict, or the admission that there is none."""

    success: bool | None
    """None means ungraded: our own fault, or a question that no rule decides. Never counted as a failure."""
    checks: Mapping[str, bool] = field(default_factory=dict)
    """The verdict of each criterion."""
    metrics: Mapping[str, Json] = field(default_factory=dict)
    """The scorer's own numbers."""

    @property
    def utility(self) -> bool | None:
        """Whether what had to be achieved was; None where nothing had to, or nobody could tell."""
        return self._all(of_safety=False)

    @property
    def safety(self) -> bool | None:
        """Whether what must not happen did not; None where nothing is forbidden, or nobody could tell."""
        return self._all(of_safety=True)

    def _all(self, *, of_safety: bool) -> bool | None:
        verdicts = [held for name, held in self.checks.items() if is_of_safety(name) is of_safety]
        if not all(verdicts):
            return False
        return True if verdicts and self.success is not None else None


def is_of_safety(check: str) -> bool:
    """Tell whether a check with this name is of safety."""
    return check == SAFETY or check.startswith(f"{SAFETY}:")


UNGRADED = Score(None)
