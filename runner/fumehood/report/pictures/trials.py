"""Repeated trials: what can be solved, and what can be relied on."""

from __future__ import annotations

from typing import Any

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


def repeated_trials(findings: Findings) -> Picture:
    """Return pass@k and pass^k against k."""
    rows = [row for found in findings.subjects for row in _rows(found)]
    ks = sorted({row["k"] for row in rows})
    caption = (
        "Solid: the chance that at least one of k trials succeeds (pass@k). Dashed: that all k do (pass^k). "
        "The gap between them is luck."
    )

    def spec(width_px: int) -> Spec:
        colour = agent_colour(findings.subjects)
        colour.setdefault("legend", legend_columns(width_px))
        return {
            "data": {"values": rows},
            "width": width_px,
            "height": 240,
            "autosize": FIT,
            "encoding": {
                "x": {
                    "field": "k",
                    "type": "quantitative",
                    "scale": {"type": "log", "base": 2, "nice": False},
                    "axis": {"values": ks, "title": "k, trials", "grid": False, "format": "d"},
                },
                "y": {
                    "field": "value",
                    "type": "quantitative",
                    "scale": SHARE,
                    "axis": {**PER_CENT, "title": None},
                },
                "color": colour,
                "strokeDash": {
                    "field": "rate",
                    "scale": {"domain": ["pass@k", "pass^k"], "range": [[1, 0], [5, 4]]},
                    "legend": None,
                },
            },
            "layer": [
                {"mark": {"type": "line", "strokeWidth": 2}},
                {
                    "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                    "encoding": SAID,
                },
            ],
        }

    return Picture("repeated_trials", "Repeated trials", caption, spec)


def _rows(found: SubjectFindings) -> list[dict[str, Any]]:
    agent = label_of(found)
    return [
        {
            "agent": agent,
            "rate": name,
            "k": rate.k,
            "value": rate.value,
            "said": f"{agent}, {name} at k = {rate.k}: {rate.value:.1%} over {rate.tasks:,} tasks",
        }
        for name, rates in (("pass@k", found.trials.pass_at), ("pass^k", found.trials.pass_all))
        for rate in rates
    ]
