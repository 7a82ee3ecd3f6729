"""Why episodes fail, as shares of all episodes, so that a longer bar is a worse agent."""

from __future__ import annotations

from typing import Any

from fumehood.report.findings import Findings, SubjectFindings
from fumehood.report.pictures.encodings import FIT, PER_CENT, SAID, label_of, legend_columns
from fumehood.report.pictures.picture import Picture, Spec
from fumehood.report.pictures.theme import BAD, QUIET, SERIES
from fumehood.report.statistics.failure_labels import TITLES, Label

COLOURS = {
    Label.INFRASTRUCTURE: SERIES[7],
    Label.TIMEOUT: SERIES[1],
    Label.BUDGET: BAD,
    Label.CONTEXT_OVERFLOW: SERIES[5],
    Label.CRASH: SERIES[3],
    Label.PARSING: SERIES[4],
    Label.TOOL_INVOCATION: SERIES[2],
    Label.REASONING: SERIES[0],
    Label.UNATTRIBUTED: QUIET,
}
"""Warm for what stopped an agent, cool for what it chose, grey for what nobody knows."""


def failure_taxonomy(findings: Findings) -> Picture:
    """Return the primary labels of every agent's failed episodes."""
    rows = [row for found in findings.subjects for row in _rows(found)]
    labels = [label_of(found) for found in findings.subjects]
    present = [label for label in Label if any(row["label"] == TITLES[label] for row in rows)]
    caption = (
        "Failed episodes by primary label, as shares of all episodes. Labels are given by rule, from typed "
        "events; what no rule can tell is unattributed."
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
                **SAID,
            },
        }

    return Picture("failure_taxonomy", "Why episodes fail", caption, spec)


def _rows(found: SubjectFindings) -> list[dict[str, Any]]:
    agent, episodes = label_of(found), found.whole.counts.episodes
    return [
        {
            "agent": agent,
            "label": TITLES[label],
            "at": list(Label).index(label),
            "share": number / episodes,
            "said": f"{agent}: {TITLES[label]} in {number:,} of {episodes:,} episodes",
        }
        for label, number in found.primaries().items()
    ]
