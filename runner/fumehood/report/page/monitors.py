"""The page of a monitor: one file that opens offline and runs no script."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from fumehood.report.monitors import (
    MonitorScore,
    agent_table,
    alarm_table,
    area_text,
    cost_table,
    curve_table,
    live_table,
)
from fumehood.report.page.assets import content_security_policy, style
from fumehood.report.page.render import environment
from fumehood.report.page.verdict import runs_shown
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
    page = (
        environment()
        .get_template("monitors.html.j2")
        .render(
            mark=mark,
            policy=content_security_policy(style(), ""),
            style=Markup(style()),
            name=score.name,
            area=area_text(score),
            curve=_corners(score),
            points=[
                (_x(alarms.rates.false_alarms.value), _y(alarms.rates.recall.value))
                for alarms in score.alarms
                if score.curve
            ],
            side=SIDE_PX,
            tables=[table for table in tables if table.rows],
            runs=runs_shown(runs),
        )
    )
    return page.encode("utf-8")


def _corners(score: MonitorScore) -> str:
    """Return the points of the curve in the coordinates of the picture."""
    return " ".join(f"{_x(point.false_alarms)},{_y(point.recall)}" for point in score.curve)


def _x(share: float | None) -> float:
    return round(SIDE_PX * (share or 0.0), 1)


def _y(share: float | None) -> float:
    return round(SIDE_PX * (1 - (share or 0.0)), 1)
