"""Selects the best k scores in a fixed order: descending score, then ascending number.

Sorting libraries do not define the order of equal scores, and partial sorts do not define which of
the equal scores at the cut are kept. Here both are defined.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BLOCK = 64
SMALLEST = 1e-30
"""Less than every possible weight, greater than zero."""


def best(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Return the numbers of the ``k`` best positive scores, or fewer, by (−score, number)."""
    candidates = np.flatnonzero(scores >= max(_floor(scores, k), SMALLEST))
    values = scores[candidates]
    if len(values) > k:
        cut = np.partition(values, len(values) - k)[len(values) - k]
        candidates, values = candidates[values >= cut], values[values >= cut]
    # Candidates ascend by number, and a stable sort keeps that order among equal scores.
    return candidates[np.argsort(-values, kind="stable")[:k]]


def _floor(scores: NDArray[np.float32], k: int) -> float:
    """Return a score that at least ``k`` documents reach, or 0.

    If k disjoint blocks have their maximum at or above x, then k documents are at or above x.
    Taking block maxima is much cheaper than a partial sort, and the remaining sort is short.
    """
    blocks = len(scores) // BLOCK
    if blocks <= k:
        return 0.0
    # Blocks are columns, so rows are compared as whole vectors.
    maxima = scores[: blocks * BLOCK].reshape(BLOCK, blocks).max(axis=0)
    return float(np.partition(maxima, blocks - k)[blocks - k])
