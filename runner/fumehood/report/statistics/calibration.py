"""How far an agent's confidence is from how often it is right."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean

from fumehood.report.results import Results

BIN_SIZE = 100
"""Answers a bin, as BrowseComp-Plus and Humanity's Last Exam take them; the last bin takes the rest."""


def calibration_error(results: Results) -> float | None:
    """Return the root mean square difference between confidence and success over bins of equal size.

    Over the graded episodes that state a confidence; None where there are none.
    """
    stated = [
        (confidence, float(result.success))
        for result in results
        if result.success is not None and (confidence := result.number("confidence")) is not None
    ]
    return binned_error(sorted(stated), BIN_SIZE)


def binned_error(stated: Sequence[tuple[float, float]], bin_size: int) -> float | None:
    """Return the error of (confidence, success) pairs in their order, cut into bins."""
    if not stated:
        return None
    starts = [number * bin_size for number in range(max(1, len(stated) // bin_size))]
    ends = [*starts[1:], len(stated)]
    bins = [stated[start:end] for start, end in zip(starts, ends, strict=True)]
    squares = [
        len(own)
        * (fmean(confidence for confidence, _ in own) - fmean(right for _, right in own)) ** 2
        for own in bins
    ]
    return sqrt(sum(squares) / len(stated))
