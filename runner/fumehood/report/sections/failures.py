"""Section with failure labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from fumehood.report import pictures as vega
from fumehood.report.data_table import DataTable, integers, texts
from fumehood.report.findings import Findings, SubjectFindings
from fumehood.report.pictures import Picture, Spec, label_of
from fumehood.report.sections.section import Link, Section, episodes_address
from fumehood.report.statistics.failures import LEVELS, TITLES, Label, meanings
from fumehood.report.text_table import TextTable


def failures_section(findings: Findings) -> Section:
    """Return why episodes failed."""
    any_failed = any(agent.attributions for agent in findings.subjects)
    return Section(
        label="Failures",
        title="Why episodes fail",
        tables=[failure_table(findings)],
        pictures=[failure_taxonomy(findings)] if any_failed else (),
        data=[failure_data(findings)],
        links=list(_links(findings)),
    )


def _links(findings: Findings) -> Iterator[Link]:
    for agent in findings.subjects:
        for label, number in agent.primaries().items():
            text = f"{agent.subject.label}: {TITLES[label]} {number:,}"
            yield Link(text, episodes_address(agent=agent.subject.label, failure=TITLES[label]))


def _label_counts(findings: Findings) -> list[tuple[str, dict[Label, int], dict[Label, int]]]:
    """Return the name of each agent and how often each label is primary and secondary."""
    return [
        (agent.subject.label, agent.primaries(), agent.secondaries()) for agent in findings.subjects
    ]


def failure_table(findings: Findings) -> TextTable:
    """Return failed episodes by primary label, and in brackets by secondary label."""
    counts = _label_counts(findings)
    used = [
        label
        for label in Label
        if any(label in first or label in second for _, first, second in counts)
    ]
    rows = [
        (
            *(LEVELS[label].value, TITLES[label]),
            *(_counted(first, second, label) for _, first, second in counts),
        )
        for label in used
    ]
    header = ("Level", "Label", *(name for name, _, _ in counts))
    note = f"Failed episodes by primary label; in brackets: by secondary label. {meanings(used)}"
    return TextTable("Why episodes fail", header, rows, names=2, note=note)


def _counted(first: Mapping[Label, int], second: Mapping[Label, int], label: Label) -> str:
    also = f" (+{second[label]:,})" if label in second else ""
    return f"{first.get(label, 0):,}{also}"


def failure_data(findings: Findings) -> DataTable:
    """Return how often each label is primary and secondary."""
    columns = (*texts("agent", "level", "label"), *integers("primary", "secondary"))
    rows = [
        (agent, LEVELS[label].value, label.value, first.get(label, 0), second.get(label, 0))
        for (agent, first, second), label in product(_label_counts(findings), Label)
    ]
    return DataTable("failures", columns, rows)


COLOURS = {
    Label.INFRASTRUCTURE: vega.SERIES[7],
    Label.UNSAFE: vega.SERIES[6],
    Label.COUNTERPART: vega.GOOD,
    Label.TIMEOUT: vega.SERIES[1],
    Label.BUDGET: vega.BAD,
    Label.CONTEXT_OVERFLOW: vega.SERIES[5],
    Label.MONITOR: vega.INK,
    Label.CRASH: vega.SERIES[3],
    Label.PARSING: vega.SERIES[4],
    Label.TOOL_INVOCATION: vega.SERIES[2],
    Label.REASONING: vega.SERIES[0],
    Label.UNATTRIBUTED: vega.QUIET,
}
"""A separate colour for each label; grey for unattributed."""


def failure_taxonomy(findings: Findings) -> Picture:
    """Return the primary labels of each agent's failed episodes."""
    rows = [row for agent in findings.subjects for row in _rows(agent)]
    labels = [label_of(agent) for agent in findings.subjects]
    present = [label for label in Label if any(row["label"] == TITLES[label] for row in rows)]
    caption = (
        "Failed episodes by primary label, as shares of all episodes. Rules assign the labels "
        f"from typed events. {meanings(present)}"
    )

    def spec(width_px: int) -> Spec:
        titles = [TITLES[label] for label in present]
        colours = {"domain": titles, "range": [COLOURS[label] for label in present]}
        encoding = {
            "y": vega.field("agent", "nominal", sort=labels, axis=vega.NO_TITLE),
            "x": vega.share("share"),
            "color": vega.field(
                "label", "nominal", scale=colours, legend=vega.legend_columns(width_px)
            ),
            "order": vega.field("at"),
        }
        return vega.frame(
            width_px, rows, height={"step": 34}, **vega.layer("bar", encoding, height=18)
        )

    return Picture("failure_taxonomy", "Why episodes fail", caption, spec)


def _rows(agent: SubjectFindings) -> list[dict[str, Any]]:
    name, episodes = label_of(agent), agent.whole.counts.episodes
    return [
        {
            "agent": name,
            "label": TITLES[label],
            "at": list(Label).index(label),
            "share": number / episodes,
            "label_text": f"{name}: {TITLES[label]} in {number:,} of {episodes:,} episodes",
        }
        for label, number in agent.primaries().items()
    ]
