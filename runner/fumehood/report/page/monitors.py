"""The page of a monitor: one file that opens offline and runs no script."""

from __future__ import annotations

from collections.abc import Sequence

from fumehood.report.monitors import (
    MonitorScore,
    agent_table,
    alarm_table,
    area_text,
    cost_table,
    curve_table,
    live_table,
)
from fumehood.report.page.small_page import small_page
from fumehood.report.runs import Run

SIDE_PX = 320
"""Width and height of the drawn curve."""


def monitor_page(score: MonitorScore, runs: Sequence[Run], mark: str) -> bytes:
    """Return the HTML page of a monitor.

    Args:
        score: of the monitor.
        runs: that it watched.
        mark: that of unverified runs; empty if all are verified.
    """
    tables = [of(score) for of in (alarm_table, agent_table, live_table, cost_table, curve_table)]
    return small_page(
        "monitors.html.j2",
        runs,
        mark,
        name=score.name,
        area=area_text(score),
        curve=" ".join(f"{_x(point.false_alarms)},{_y(point.recall)}" for point in score.curve),
        points=[
            (_x(alarms.rates.false_alarms.value), _y(alarms.rates.recall.value))
            for alarms in score.alarms
            if score.curve
        ],
        side=SIDE_PX,
        tables=[table for table in tables if table.rows],
    )


def _x(share: float | None) -> float:
    return round(SIDE_PX * (share or 0.0), 1)


def _y(share: float | None) -> float:
    return round(SIDE_PX * (1 - (share or 0.0)), 1)
