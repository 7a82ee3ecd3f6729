"""Pictures as Vega-Lite specifications: their theme, the encodings they share, and drawing to SVG."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import vl_convert

from fumehood.report.findings import SubjectFindings
from fumehood.report.safe_text import safe

SERIES = tuple(f"var(--series-{number})" for number in range(8))
"""Colours of agents, in their order; a ninth agent has the first one's again."""


GOOD, BAD, QUIET = "var(--good)", "var(--bad)", "var(--quiet)"


INK, SOFT, LINE = "var(--ink)", "var(--soft)", "var(--line)"


LIGHT = {
    "--ink": "#1c2530",
    "--soft": "#5b6875",
    "--line": "#e1e5ea",
    "--quiet": "#aeb7c1",
    "--good": "#1a7f5a",
    "--bad": "#c2452d",
    "--series-0": "#2f6db5",
    "--series-1": "#d9822b",
    "--series-2": "#2a9187",
    "--series-3": "#b1457f",
    "--series-4": "#7b61c4",
    "--series-5": "#8a7a2c",
    "--series-6": "#5d7f3a",
    "--series-7": "#6f7b88",
}


DARK = {
    "--ink": "#e6ebf1",
    "--soft": "#9aa7b4",
    "--line": "#2b3440",
    "--quiet": "#566270",
    "--good": "#4cc38a",
    "--bad": "#f0795b",
    "--series-0": "#6ea8ec",
    "--series-1": "#f0a75c",
    "--series-2": "#4fc1b3",
    "--series-3": "#e27fb3",
    "--series-4": "#a993ee",
    "--series-5": "#c8b75a",
    "--series-6": "#94bd67",
    "--series-7": "#a3afbb",
}


FONT = "Helvetica, Arial, sans-serif"
"""What the drawing library measures text in, so that nothing overlaps where a page shows it."""


def config() -> dict[str, Any]:
    """Return the look of every picture, as Vega-Lite takes it."""
    return {
        "background": None,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            "labelColor": INK,
            "labelFontSize": 12,
            "titleColor": SOFT,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "gridColor": LINE,
            "domain": False,
            "ticks": False,
            "labelPadding": 8,
            "labelLimit": 180,
        },
        "axisY": {
            "titleAlign": "left",
            "titleAngle": 0,
            "titleAnchor": "end",
            "titleY": -10,
            "titleX": 0,
        },
        "legend": {
            "orient": "top",
            "labelColor": INK,
            "labelFontSize": 12,
            "labelLimit": 220,
            "title": None,
            "symbolType": "circle",
            "symbolSize": 90,
            "symbolOpacity": 1,
            "offset": 14,
            "columnPadding": 18,
        },
        "header": {
            "labelColor": INK,
            "labelFontSize": 12,
            "labelFontWeight": "bold",
            "title": None,
        },
        "rule": {"stroke": SOFT},
        "text": {"color": INK, "fontSize": 12},
    }


def in_light(svg: str) -> str:
    """Return a picture that stands alone: every named colour by its light value."""
    return re.sub(r"var\((--[a-z0-9-]+)\)", lambda found: LIGHT[found.group(1)], svg)


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


WIDE_PX = 720


NARROW_PX = 330
"""Width of a picture without what stands beside its axes, on a screen and on a telephone."""


VEGA_LITE = "6.1"
"""The version of the language that specifications are written in."""


Spec = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture, at any width."""

    name: str
    """Of the file that holds it, without its ending."""
    title: str
    caption: str
    """What is seen, and what to know to read it."""
    spec: Callable[[int], Spec]
    """From the width in pixels to a Vega-Lite specification."""


def draw(picture: Picture, width_px: int) -> str:
    """Return the picture as SVG whose colours are names of the theme.

    Text in it is escaped; it holds no style attribute and no script, so a strict policy shows it.
    """
    spec = {**picture.spec(width_px), "config": config(), "padding": 4}
    # No address is allowed, so that drawing never reaches for the network.
    return vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE, allowed_base_urls=[])
