"""Section with tool calls against success."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fumehood.report import wording
from fumehood.report.findings import Findings, SubjectFindings
from fumehood.report.pictures import (
    ARIA_LABEL,
    FIT,
    GOOD,
    PER_CENT,
    QUIET,
    Picture,
    Spec,
    agent_colour,
    label_of,
    legend_columns,
)
from fumehood.report.sections.episodes import episode_data
from fumehood.report.sections.section import Section
from fumehood.report.statistics.metrics import Unit, graded


def calls_section(findings: Findings) -> Section:
    """Return how many calls episodes made, and whether they succeeded."""
    pictures = [calls_and_success(findings)] if findings.any_graded else []
    if sum(agent_findings.whole.counts.graded > 0 for agent_findings in findings.subjects) > 1:
        pictures.append(effort_and_success(findings))
    return Section(
        label="Calls",
        title="Calls against success",
        pictures=pictures,
        data=[episode_data(findings)],
    )


MANY_CALLS = 16
"""Episodes with more calls are in the last column."""


def calls_and_success(findings: Findings) -> Picture:
    """Return a histogram of calls per episode for each agent, by success."""
    rows = [row for agent_findings in findings.subjects for row in _histogram(agent_findings)]
    labels = [label_of(agent_findings) for agent_findings in findings.subjects]
    last = max((int(row["calls"]) for row in rows), default=0)
    caption = (
        f"Graded episodes by number of tool calls. The last column has {MANY_CALLS} calls or more."
    )

    def spec(width_px: int) -> Spec:
        columns = min(len(labels), 3 if width_px > 500 else 1)
        return {
            "data": {"values": rows},
            "facet": {
                "field": "agent",
                "type": "nominal",
                "sort": labels,
                "header": {"labelAnchor": "start"},
            },
            "columns": columns,
            "spacing": 26,
            "resolve": {"axis": {"x": "independent"}},
            "spec": {
                "width": (width_px - 56) // columns - 26,
                "height": 110,
                "mark": {"type": "bar"},
                "encoding": {
                    "x": {
                        "field": "calls",
                        "type": "ordinal",
                        "scale": {"domain": list(range(last + 1)), "paddingInner": 0.15},
                        "axis": {"title": "calls", "labelAngle": 0, "labelOverlap": "greedy"},
                    },
                    "y": {
                        "field": "episodes",
                        "type": "quantitative",
                        "axis": {"title": None, "tickCount": 3},
                    },
                    "color": {
                        "field": "success",
                        "scale": {"domain": ["solved", "failed"], "range": [GOOD, QUIET]},
                    },
                    "order": {"field": "success", "sort": "descending"},
                    **ARIA_LABEL,
                },
            },
        }

    return Picture("calls_and_success", "Calls against success", caption, spec)


def effort_and_success(findings: Findings) -> Picture:
    """Return one dot per agent: mean calls against success, with intervals."""
    caption = "Mean tool calls against success; top left is best. Lines: 95 % intervals over tasks."
    rows = [
        row for agent_findings in findings.subjects if (row := _effort(agent_findings)) is not None
    ]

    def spec(width_px: int) -> Spec:
        colour = agent_colour(findings.subjects)
        colour.setdefault("legend", legend_columns(width_px))
        x = {
            "field": "calls",
            "type": "quantitative",
            "scale": {"zero": True},
            "axis": {"title": "mean calls", "grid": False, "tickCount": 6},
        }
        y = {
            "field": "success",
            "type": "quantitative",
            "scale": {"domain": [0, 1]},
            "axis": {**PER_CENT, "title": None},
        }
        line = {"type": "rule", "strokeWidth": 2, "opacity": 0.45}
        return {
            "data": {"values": rows},
            "width": width_px,
            "height": 240,
            "autosize": FIT,
            "encoding": {"color": colour, **ARIA_LABEL},
            "layer": [
                {
                    "mark": line,
                    "encoding": {
                        "x": {**x, "field": "calls_low"},
                        "x2": {"field": "calls_high"},
                        "y": y,
                    },
                },
                {
                    "mark": line,
                    "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
                    "encoding": {"x": x, "y": y},
                },
            ],
        }

    return Picture("effort_and_success", "Mean calls and success", caption, spec)


def _histogram(agent_findings: SubjectFindings) -> list[dict[str, Any]]:
    label = label_of(agent_findings)
    counted = Counter(
        (min(int(calls), MANY_CALLS), "solved" if result.success else "failed")
        for result in graded(agent_findings.subject.results)
        if (calls := result.number("tool_calls")) is not None
    )
    return [
        {
            "agent": label,
            "calls": calls,
            "success": success,
            "episodes": episodes,
            "label_text": f"{label}: {episodes:,} episodes {success} with {calls} calls",
        }
        for (calls, success), episodes in sorted(counted.items())
    ]


def _effort(agent_findings: SubjectFindings) -> dict[str, Any] | None:
    success, calls = (
        agent_findings.whole.estimates["task_success"],
        agent_findings.whole.estimates["tool_calls_used"],
    )
    if success.value is None or calls.value is None:
        return None
    text = (
        f"{wording.estimate(success, Unit.SHARE)} with {wording.estimate(calls, Unit.COUNT)} calls"
    )
    return {
        "agent": label_of(agent_findings),
        "success": success.value,
        "low": success.interval.low if success.interval else success.value,
        "high": success.interval.high if success.interval else success.value,
        "calls": calls.value,
        "calls_low": calls.interval.low if calls.interval else calls.value,
        "calls_high": calls.interval.high if calls.interval else calls.value,
        "label_text": f"{label_of(agent_findings)}: {text}",
    }
