"""Where a team of MARBLE states its result, which a scorer reads."""

from __future__ import annotations

MARK = "TEAM RESULT:"
"""A text that contains it ends the work; the part after it is the result."""
SOLUTION = "/solution.py"


def result_of_team(text: str) -> str:
    """Return the result in a text; empty if it has none."""
    return text.partition(MARK)[2].strip()
