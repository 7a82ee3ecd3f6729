"""Interval and test of a difference in success with one pair of episodes per task.

Both are score methods, so they never disagree: the 95 % interval contains 0 exactly if p ≥ 0.05.
"""

from __future__ import annotations

from math import erfc, inf, sqrt
from statistics import NormalDist

from fumehood.report.statistics.intervals import LEVEL, Interval

_Z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
_HALVINGS = 50


def flip_interval(won: int, lost: int, pairs: int) -> Interval:
    """Return the score interval of a paired difference of shares (Tango 1998).

    Tango, "Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design", Statistics in Medicine 17.

    Args:
        won: pairs in which only the second episode succeeded.
        lost: pairs in which only the first did.
        pairs: all pairs; at least one.
    """
    return Interval(_end(won, lost, pairs, -1.0), _end(won, lost, pairs, 1.0))


def mcnemar(won: int, lost: int) -> float:
    """Return the two-sided p-value of McNemar's score test (McNemar 1947).

    The exact test is significant too rarely for few flips (Fagerland, Lydersen and Laake 2013, BMC
    Medical Research Methodology 13:91).
    """
    return erfc(abs(won - lost) / sqrt(2 * (won + lost))) if won + lost else 1.0


def _end(won: int, lost: int, pairs: int, limit: float) -> float:
    inside, outside = (won - lost) / pairs, limit
    if _score(won, lost, pairs, limit) <= _Z:
        return limit
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if _score(won, lost, pairs, middle) <= _Z:
            inside = middle
        else:
            outside = middle
    return inside


def _score(won: int, lost: int, pairs: int, difference: float) -> float:
    """Return how many standard errors the observed difference is from an assumed one."""
    away = abs(won - lost - pairs * difference)
    if away < 1e-9:
        return 0.0
    # Most probable share of lost pairs under the assumed difference: the root of a quadratic.
    b = (2 * pairs - won + lost) * difference - won - lost
    c = lost * difference * (difference - 1)
    share = (sqrt(max(0.0, b * b - 8 * pairs * c)) - b) / (4 * pairs)
    variance = pairs * (2 * share + difference * (1 - difference))
    return away / sqrt(variance) if variance > 1e-12 else inf
