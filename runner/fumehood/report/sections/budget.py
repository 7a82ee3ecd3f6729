"""Section with success within a tool-call budget, S(k)."""

from __future__ import annotations

from typing import Any

from fumehood.report import wording
from fumehood.report.data_table import DataTable, integers, numbers, texts
from fumehood.report.findings import Findings, SubjectFindings
from fumehood.report.pictures import (
    ARIA_LABEL,
    FIT,
    PER_CENT,
    SHARE,
    Picture,
    Spec,
    agent_colour,
    label_of,
    legend_columns,
)
from fumehood.report.sections.metrics import metrics_data
from fumehood.report.sections.section import Section
from fumehood.report.statistics.metrics import BUDGETED, BUDGETS, Unit
from fumehood.report.text_table import TextTable


def budget_section(findings: Findings) -> Section:
    """Return success within a tool-call budget."""
    return Section(
        label="Budget",
        title="Success within a tool-call budget",
        tables=[budget_table(findings)],
        pictures=[budgeted_success(findings)] if findings.any_graded else (),
        data=[budget_data(findings), metrics_data(findings)],
    )


def budget_table(findings: Findings) -> TextTable:
    """Return S(k) and the area under it for every agent."""
    header = ("Agent", *(metric.title for metric in BUDGETED))
    rows = [
        (agent_findings.subject.label, *wording.estimates(agent_findings.whole, BUDGETED))
        for agent_findings in findings.subjects
    ]
    note = (
        "S(k): share of episodes that succeeded with at most k tool calls. Episodes ran without "
        "this limit."
    )
    return TextTable("Success within a tool-call budget", header, rows, note=note)


def budget_data(findings: Findings) -> DataTable:
    """Return S(k) for every k."""
    columns = (*texts("agent"), *integers("k"), *numbers("s"))
    rows = [
        (agent_findings.subject.label, k, share)
        for agent_findings in findings.subjects
        for k, share in enumerate(agent_findings.curve)
    ]
    return DataTable("budgeted_success", columns, rows)


def budgeted_success(findings: Findings) -> Picture:
    """Return S(k) for every k, with the four published budgets marked."""
    caption = (
        "Share of graded episodes that succeeded with at most k tool calls. Episodes ran without "
        "this limit. Dots mark the budgets 4, 8, 16 and 32, with 95 % intervals."
    )
    steps = [row for agent_findings in findings.subjects for row in _steps(agent_findings)]
    marks = [row for agent_findings in findings.subjects for row in _marks(agent_findings)]

    def spec(width_px: int) -> Spec:
        colour = agent_colour(findings.subjects)
        colour.setdefault("legend", legend_columns(width_px))
        x = {
            "field": "k",
            "type": "quantitative",
            "scale": {"type": "log", "base": 2, "domain": [1, BUDGETS[-1]], "nice": False},
            "axis": {
                "values": [1, 2, 4, 8, 16, 32],
                "title": "k, maximum tool calls",
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
                        **ARIA_LABEL,
                    },
                },
                {
                    "data": {"values": marks},
                    "mark": {"type": "point", "filled": True, "size": 75, "opacity": 1},
                    "encoding": {"x": x, "y": y, **ARIA_LABEL},
                },
            ],
        }

    return Picture("budgeted_success", "Success within a tool-call budget", caption, spec)


def _steps(agent_findings: SubjectFindings) -> list[dict[str, Any]]:
    return [
        {"agent": label_of(agent_findings), "k": k, "s": share}
        for k, share in enumerate(agent_findings.curve)
        if k
    ]


def _marks(agent_findings: SubjectFindings) -> list[dict[str, Any]]:
    rows = []
    for budget in BUDGETS:
        own = agent_findings.whole.estimates[f"s_{budget}"]
        if own.value is None:
            continue
        ends = own.interval
        rows.append(
            {
                "agent": label_of(agent_findings),
                "k": budget,
                "s": own.value,
                "low": ends.low if ends else own.value,
                "high": ends.high if ends else own.value,
                "label_text": (
                    f"{label_of(agent_findings)}, S({budget}): {wording.estimate(own, Unit.SHARE)}"
                ),
            }
        )
    return rows
