"""Section with failure labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from fumehood.report.data_table import DataTable, integers, texts
from fumehood.report.findings import Findings, SubjectFindings
from fumehood.report.pictures import (
    ARIA_LABEL,
    BAD,
    FIT,
    GOOD,
    PER_CENT,
    QUIET,
    SERIES,
    Picture,
    Spec,
    label_of,
    legend_columns,
)
from fumehood.report.sections.section import Link, Section, episodes_address
from fumehood.report.statistics.failures import LEVELS, TITLES, Label
from fumehood.report.text_table import TextTable


def failures_section(findings: Findings) -> Section:
    """Return why episodes failed."""
    any_failed = any(agent_findings.attributions for agent_findings in findings.subjects)
    return Section(
        label="Failures",
        title="Why episodes fail",
        tables=[failure_table(findings)],
        pictures=[failure_taxonomy(findings)] if any_failed else (),
        data=[failure_data(findings)],
        links=list(_links(findings)),
    )


def _links(findings: Findings) -> Iterator[Link]:
    for agent_findings in findings.subjects:
        for label, number in agent_findings.primaries().items():
            text = f"{agent_findings.subject.label}: {TITLES[label]} {number:,}"
            yield Link(
                text, episodes_address(agent=agent_findings.subject.label, failure=TITLES[label])
            )


def failure_table(findings: Findings) -> TextTable:
    """Return failed episodes by primary label, and in brackets by secondary label."""
    counted = [
        (agent_findings, agent_findings.primaries(), agent_findings.secondaries())
        for agent_findings in findings.subjects
    ]
    present = [
        label
        for label in Label
        if any(label in first or label in second for _, first, second in counted)
    ]
    header = (
        "Level",
        "Label",
        *(agent_findings.subject.label for agent_findings in findings.subjects),
    )
    rows = [
        (
            LEVELS[label].value,
            TITLES[label],
            *(_counted(first, second, label) for _, first, second in counted),
        )
        for label in present
    ]
    note = "Failed episodes by primary label; in brackets: by secondary label."
    return TextTable("Why episodes fail", header, rows, names=2, note=note)


def _counted(first: Mapping[Label, int], second: Mapping[Label, int], label: Label) -> str:
    also = f" (+{second[label]:,})" if label in second else ""
    return f"{first.get(label, 0):,}{also}"


def failure_data(findings: Findings) -> DataTable:
    """Return how often each label is primary and secondary."""
    columns = (*texts("agent", "level", "label"), *integers("primary", "secondary"))
    counted = [
        (agent_findings.subject.label, agent_findings.primaries(), agent_findings.secondaries())
        for agent_findings in findings.subjects
    ]
    rows = [
        (agent, LEVELS[label].value, label.value, first.get(label, 0), second.get(label, 0))
        for (agent, first, second), label in product(counted, Label)
    ]
    return DataTable("failures", columns, rows)


COLOURS = {
    Label.INFRASTRUCTURE: SERIES[7],
    Label.UNSAFE: SERIES[6],
    Label.COUNTERPART: GOOD,
    Label.TIMEOUT: SERIES[1],
    Label.BUDGET: BAD,
    Label.CONTEXT_OVERFLOW: SERIES[5],
    Label.CRASH: SERIES[3],
    Label.PARSING: SERIES[4],
    Label.TOOL_INVOCATION: SERIES[2],
    Label.REASONING: SERIES[0],
    Label.UNATTRIBUTED: QUIET,
}
"""Warm colours for execution, cool colours for decisions, grey for unattributed."""


def failure_taxonomy(findings: Findings) -> Picture:
    """Return the primary labels of each agent's failed episodes."""
    rows = [row for agent_findings in findings.subjects for row in _rows(agent_findings)]
    labels = [label_of(agent_findings) for agent_findings in findings.subjects]
    present = [label for label in Label if any(row["label"] == TITLES[label] for row in rows)]
    caption = (
        "Failed episodes by primary label, as shares of all episodes. Rules assign the labels "
        "from typed events; episodes without a matching rule are unattributed."
    )

    def spec(width_px: int) -> Spec:
        return {
            "data": {"values": rows},
            "width": width_px,
            "height": {"step": 34},
            "autosize": FIT,
            "mark": {"type": "bar", "height": 18},
            "encoding": {
                "y": {"field": "agent", "type": "nominal", "sort": labels, "axis": {"title": None}},
                "x": {
                    "field": "share",
                    "type": "quantitative",
                    "scale": {"domain": [0, 1]},
                    "axis": {**PER_CENT, "title": None},
                },
                "color": {
                    "field": "label",
                    "type": "nominal",
                    "scale": {
                        "domain": [TITLES[label] for label in present],
                        "range": [COLOURS[label] for label in present],
                    },
                    "legend": legend_columns(width_px),
                },
                "order": {"field": "at", "type": "quantitative"},
                **ARIA_LABEL,
            },
        }

    return Picture("failure_taxonomy", "Why episodes fail", caption, spec)


def _rows(agent_findings: SubjectFindings) -> list[dict[str, Any]]:
    agent, episodes = label_of(agent_findings), agent_findings.whole.counts.episodes
    return [
        {
            "agent": agent,
            "label": TITLES[label],
            "at": list(Label).index(label),
            "share": number / episodes,
            "label_text": f"{agent}: {TITLES[label]} in {number:,} of {episodes:,} episodes",
        }
        for label, number in agent_findings.primaries().items()
    ]
