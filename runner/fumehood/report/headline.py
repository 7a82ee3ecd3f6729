"""When a run says too little to be summed up."""

from __future__ import annotations

from fumehood.report.results import Counts

LOST_SHARE_MAX = 0.1
"""With a larger share of episodes without a verdict no headline is printed: they could change it."""


def why_no_headline(counts: Counts) -> str | None:
    """Return why the result must not be summed up in one number; None where it may."""
    lost = counts.ungraded + counts.infra
    if not counts.episodes or lost / counts.episodes <= LOST_SHARE_MAX:
        return None
    return (
        f"{lost} of {counts.episodes} episodes have no verdict "
        f"({counts.infra} failed on our side, {counts.ungraded} ungraded): no result to speak of"
    )


def why_no_comparison(pairs: int, undecided: int) -> str | None:
    """Return why a difference must not be summed up in one number; None where it may.

    Args:
        pairs: of episodes with a verdict on both sides.
        undecided: pairs in which a side has none.
    """
    both = pairs + undecided
    if pairs and undecided / both <= LOST_SHARE_MAX:
        return None
    return f"{undecided} of {both} pairs have no verdict on both sides: no difference to speak of"
