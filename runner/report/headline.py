"""When a run says too little to be summed up."""

from __future__ import annotations

from runner.report.results import Counts

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
