"""Section with tool calls against success."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fumehood.report import pictures as vega
from fumehood.report import wording
from fumehood.report.findings import Findings, SubjectFindings
from fumehood.report.pictures import Picture, Spec, label_of
from fumehood.report.sections.episodes import episode_data
from fumehood.report.sections.section import Section
from fumehood.report.statistics.metrics import Unit, graded


def calls_section(findings: Findings) -> Section:
    """Return how many calls episodes made, and whether they succeeded."""
    pictures = [calls_and_success(findings)] if findings.any_graded else []
    if sum(agent.whole.counts.graded > 0 for agent in findings.subjects) > 1:
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
    rows = [row for agent in findings.subjects for row in _histogram(agent)]
    labels = [label_of(agent) for agent in findings.subjects]
    last = max((int(row["calls"]) for row in rows), default=0)
    caption = (
        f"Graded episodes by number of tool calls. The last column has {MANY_CALLS} calls or more."
    )

    def spec(width_px: int) -> Spec:
        columns = min(len(labels), 3 if width_px > 500 else 1)
        x_axis = {"title": "calls", "labelAngle": 0, "labelOverlap": "greedy"}
        x_scale = {"domain": list(range(last + 1)), "paddingInner": 0.15}
        colours = {"domain": ["solved", "failed"], "range": [vega.GOOD, vega.QUIET]}
        encoding = {
            "x": vega.field("calls", "ordinal", scale=x_scale, axis=x_axis),
            "y": vega.field("episodes", axis={"title": None, "tickCount": 3}),
            "color": {"field": "success", "scale": colours},
            "order": {"field": "success", "sort": "descending"},
        }
        size = {"width": (width_px - 56) // columns - 26, "height": 110}
        return {
            "data": {"values": rows},
            "facet": vega.field("agent", "nominal", sort=labels, header={"labelAnchor": "start"}),
            "columns": columns,
            "spacing": 26,
            "resolve": {"axis": {"x": "independent"}},
            "spec": {**size, **vega.layer("bar", encoding)},
        }

    return Picture("calls_and_success", "Calls against success", caption, spec)


def effort_and_success(findings: Findings) -> Picture:
    """Return one dot per agent: mean calls against success, with intervals."""
    caption = "Mean tool calls against success; top left is best. Lines: 95 % intervals over tasks."
    rows = [row for agent in findings.subjects if (row := _effort(agent)) is not None]

    def spec(width_px: int) -> Spec:
        axis = {"title": "mean calls", "grid": False, "tickCount": 6}
        x, y = vega.field("calls", scale={"zero": True}, axis=axis), vega.share("success")
        return vega.frame(
            width_px,
            rows,
            height=240,
            encoding={"color": vega.agent_colour(findings.subjects, width_px)},
            layer=[
                vega.whiskers(x={**x, "field": "calls_low"}, x2={"field": "calls_high"}, y=y),
                vega.whiskers(x=x, y=vega.share("low"), y2={"field": "high"}),
                vega.dots(110, x=x, y=y),
            ],
        )

    return Picture("effort_and_success", "Mean calls and success", caption, spec)


def _histogram(agent: SubjectFindings) -> list[dict[str, Any]]:
    label = label_of(agent)
    counted = Counter(
        (min(int(calls), MANY_CALLS), "solved" if result.success else "failed")
        for result in graded(agent.subject.results)
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


def _effort(agent: SubjectFindings) -> dict[str, Any] | None:
    success, calls = (agent.whole.estimates[name] for name in ("task_success", "tool_calls_used"))
    if success.value is None or calls.value is None:
        return None
    text = (
        f"{wording.estimate(success, Unit.SHARE)} with {wording.estimate(calls, Unit.COUNT)} calls"
    )
    names = ("low", "high", "calls_low", "calls_high")
    ends = zip(names, (*vega.interval_ends(success), *vega.interval_ends(calls)), strict=True)
    return {
        "agent": label_of(agent),
        "success": success.value,
        "calls": calls.value,
        "label_text": f"{label_of(agent)}: {text}",
        **dict(ends),
    }
