"""Success by fault and by domain: a dot an agent, with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fumehood.report import wording
from fumehood.report.findings import Findings, GroupFindings
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
from fumehood.report.safe_text import safe
from fumehood.report.statistics.metrics import Unit


def success_by_fault(findings: Findings) -> Picture:
    """Return success by planned fault; a task with several is in the row of each."""
    caption = (
        "Share of graded episodes that succeeded, by planned fault; a task with several faults is in the row "
        "of each. Lines are 95 % intervals over tasks."
    )
    return Picture("success_by_fault", "Success by fault", caption, _spec(findings, "by_fault"))


def success_by_domain(findings: Findings) -> Picture:
    """Return success by the world that a task is in."""
    caption = (
        "Share of graded episodes that succeeded, by domain. Lines are 95 % intervals over tasks."
    )
    return Picture("success_by_domain", "Success by domain", caption, _spec(findings, "by_domain"))


def _spec(findings: Findings, grouping: str) -> Any:
    rows = [
        row
        for found in findings.subjects
        for row in _rows(label_of(found), getattr(found, grouping))
    ]
    groups = [safe(name) for name in findings.groups(grouping)]

    def spec(width_px: int) -> Spec:
        colour = agent_colour(findings.subjects)
        colour.setdefault("legend", legend_columns(width_px))
        return {
            "data": {"values": rows},
            "width": width_px,
            "autosize": FIT,
            "height": {"step": 13, "for": "offset"},
            "encoding": {
                "y": {
                    "field": "group",
                    "type": "nominal",
                    "sort": groups,
                    "axis": {"title": None, "grid": False},
                    "scale": {"paddingInner": 0.25},
                },
                "yOffset": {"field": "agent", "type": "nominal", "sort": colour["sort"]},
                "color": colour,
            },
            "layer": [_interval(), _dot()],
        }

    return spec


def _interval() -> dict[str, Any]:
    return {
        "mark": {"type": "rule", "strokeWidth": 2.5, "opacity": 0.45, "strokeCap": "round"},
        "encoding": {
            "x": {
                "field": "low",
                "type": "quantitative",
                "scale": SHARE,
                "axis": {**PER_CENT, "title": None},
            },
            "x2": {"field": "high"},
            **SAID,
        },
    }


def _dot() -> dict[str, Any]:
    return {
        "mark": {"type": "point", "filled": True, "size": 75, "opacity": 1},
        "encoding": {"x": {"field": "value", "type": "quantitative"}, **SAID},
    }


def _rows(agent: str, groups: Mapping[str, GroupFindings]) -> list[dict[str, Any]]:
    rows = []
    for name, group in groups.items():
        found = group.estimates["task_success"]
        if found.value is None:
            continue
        ends = found.interval
        told = wording.estimate(found, Unit.SHARE)
        rows.append(
            {
                "group": safe(name),
                "agent": agent,
                "value": found.value,
                "low": ends.low if ends else found.value,
                "high": ends.high if ends else found.value,
                "said": f"{agent}, {safe(name)}: {told} of {found.over:,} episodes",
            }
        )
    return rows
