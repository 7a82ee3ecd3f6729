"""The page of a verdict: one file that opens offline and runs no script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fumehood.report.page.small_page import small_page
from fumehood.report.runs import Run
from fumehood.report.statistics.verdict import Decision
from fumehood.report.verdict import Limit, Policy, Verdict, verdict_table

SCALE_PX = 360
"""Width of the drawn scale of one limit."""
DOT_RADIUS_PX = 5
"""Radius of the dot that shows the rate, and the space left and right of the scale."""


def verdict_page(
    verdicts: Sequence[Verdict], policy: Policy, runs: Sequence[Run], mark: str
) -> bytes:
    """Return the HTML page of the verdicts.

    Args:
        verdicts: one per agent.
        policy: the limits that were tested.
        runs: the runs that the verdicts are about.
        mark: that of unverified runs; empty if all are verified.
    """
    drawn = [
        (verdict, [drawn_scale(limit, one) for limit, one in verdict.decisions.items()])
        for verdict in verdicts
    ]
    table = verdict_table(verdicts, policy)
    return small_page("verdict.html.j2", runs, mark, verdicts=drawn, table=table)


def drawn_scale(limit: Limit, decision: Decision) -> dict[str, Any]:
    """Return the positions of a drawn scale, pixels; the limit is in its middle, if it fits.

    A margin on both sides shows a dot at 0 % and at 100 % whole.
    """
    end = min(1.0, max(2 * limit.max_rate, decision.upper * 1.05))

    def place(rate: float) -> float:
        return round(DOT_RADIUS_PX + (SCALE_PX - 2 * DOT_RADIUS_PX) * min(rate / end, 1.0), 1)

    return {
        "of": limit.of.replace("_", " "),
        "low": place(decision.lower),
        "width": max(1.0, place(decision.upper) - place(decision.lower)),
        "rate": place(decision.rate),
        "limit": place(limit.max_rate),
        "answer": decision.answer.value,
        "text": f"rate {decision.rate:.2%}, upper bound {decision.upper:.2%}, "
        f"limit {limit.max_rate:.2%}",
    }
