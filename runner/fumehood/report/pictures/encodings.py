"""Parts that several pictures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fumehood.report.findings import SubjectFindings
from fumehood.report.pictures.theme import SERIES
from fumehood.report.safe_text import safe

SHARE = {"domain": [0, 1]}
PER_CENT = {"format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1]}
FIT = {"type": "fit-x", "contains": "padding"}
"""Axes and labels count towards the width."""
SAID: dict[str, Any] = {"description": {"field": "said", "type": "nominal"}}
"""What a reader of the screen hears of a mark, and what a page shows beside the pointer."""


def label_of(found: SubjectFindings) -> str:
    """Return the agent's label as a picture shows it."""
    return safe(found.subject.label)


def agent_colour(subjects: Sequence[SubjectFindings], *, legend: bool = True) -> dict[str, Any]:
    """Return the colour channel that tells agents apart, the same in every picture."""
    labels = [label_of(found) for found in subjects]
    colours = [SERIES[at % len(SERIES)] for at in range(len(labels))]
    shown = legend and len(labels) > 1
    return {
        "field": "agent",
        "type": "nominal",
        "sort": labels,
        "scale": {"domain": labels, "range": colours},
        **({} if shown else {"legend": None}),
    }


def legend_columns(width_px: int) -> dict[str, Any]:
    """Return a legend that stays within the width."""
    return {"columns": max(1, width_px // 160)}
