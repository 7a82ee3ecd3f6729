"""Budgeted success: how much is solved with at most k tool calls."""

from __future__ import annotations

from typing import Any

from fumehood.report import wording
from fumehood.report.findings import Findings, SubjectFindings
from fumehood.report.pictures.encodings import (
    FIT,
    PER_CENT,
    SAID,
    SHARE,
    agent_colour,
    label_of,
    legend_columns,
)
from fumehood.report.pictures.picture import Picture, Spec
from fumehood.report.statistics.metrics import BUDGETS, Unit


def budgeted_success(findings: Findings) -> Picture:
    """Return S(k) for every k, with the published four marked."""
    caption = (
        "Share of graded episodes that succeeded with at most k tool calls: a filter on what was done, not a "
        "run under that cap. Dots mark the published budgets 4, 8, 16 and 32, with 95 % intervals."
    )
    steps = [row for found in findings.subjects for row in _steps(found)]
    marks = [row for found in findings.subjects for row in _marks(found)]

    def spec(width_px: int) -> Spec:
        colour = agent_colour(findings.subjects)
        colour.setdefault("legend", legend_columns(width_px))
        x = {
            "field": "k",
            "type": "quantitative",
            "scale": {"type": "log", "base": 2, "domain": [1, BUDGETS[-1]], "nice": False},
            "axis": {
                "values": [1, 2, 4, 8, 16, 32],
                "title": "k, tool calls at most",
                "grid": False,
                "format": "d",
            },
        }
        y = {
            "field": "s",
            "type": "quantitative",
            "scale": SHARE,
            "axis": {**PER_CENT, "title": None},
        }
        return {
            "width": width_px,
            "height": 260,
            "autosize": FIT,
            "encoding": {"color": colour},
            "layer": [
                {
                    "data": {"values": steps},
                    "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
                    "encoding": {"x": x, "y": y},
                },
                {
                    "data": {"values": marks},
                    "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.45},
                    "encoding": {
                        "x": x,
                        "y": {**y, "field": "low"},
                        "y2": {"field": "high"},
                        **SAID,
                    },
                },
                {
                    "data": {"values": marks},
                    "mark": {"type": "point", "filled": True, "size": 75, "opacity": 1},
                    "encoding": {"x": x, "y": y, **SAID},
                },
            ],
        }

    return Picture("budgeted_success", "Success within a budget of calls", caption, spec)


def _steps(found: SubjectFindings) -> list[dict[str, Any]]:
    return [
        {"agent": label_of(found), "k": k, "s": share} for k, share in enumerate(found.curve) if k
    ]


def _marks(found: SubjectFindings) -> list[dict[str, Any]]:
    rows = []
    for budget in BUDGETS:
        own = found.whole.estimates[f"s_{budget}"]
        if own.value is None:
            continue
        ends = own.interval
        rows.append(
            {
                "agent": label_of(found),
                "k": budget,
                "s": own.value,
                "low": ends.low if ends else own.value,
                "high": ends.high if ends else own.value,
                "said": f"{label_of(found)}, S({budget}): {wording.estimate(own, Unit.SHARE)}",
            }
        )
    return rows
