"""The difference in success that a plan can detect."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

POWER = 0.8
LEVEL = 0.05
FLIPS = 0.3
"""Assumed share of pairs in which only one side succeeds."""
WITHIN_TASK = 0.5
"""Assumed correlation of the pairs of one task."""
ASSUMPTIONS = (
    f"Power {POWER:.0%}, level {LEVEL:.0%} after Holm's first step. Assumes that {FLIPS:.0%} of "
    f"the pairs flip, and a correlation of {WITHIN_TASK:g} between the pairs of one task."
)


def detectable_difference(tasks: int, pairs_per_task: int, comparisons: int = 1) -> float:
    """Return the smallest difference in success that a paired comparison probably detects.

    The variance of a paired difference d is FLIPS - d² (Miettinen 1968, "The matched pairs design
    in the case of all-or-none responses"). The effective number of pairs follows from the
    correlation within tasks (Kish 1965, "Survey Sampling").

    Args:
        tasks: number of tasks.
        pairs_per_task: pairs of episodes of each task.
        comparisons: number of comparisons that Holm's method corrects for.

    Returns:
        Between 0 and 1.
    """
    normal = NormalDist()
    factor = normal.inv_cdf(1 - LEVEL / 2 / comparisons) + normal.inv_cdf(POWER)
    pairs = tasks * pairs_per_task / (1 + (pairs_per_task - 1) * WITHIN_TASK)
    return min(1.0, sqrt(factor**2 * FLIPS / (pairs + factor**2)))
