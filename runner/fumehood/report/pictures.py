"""Pictures as Vega-Lite specifications: theme, shared encodings, and drawing to SVG."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import vl_convert

from fumehood.report.findings import SubjectFindings
from fumehood.report.safe_text import safe

SERIES = tuple(f"var(--series-{number})" for number in range(8))
"""Colours of agents, in their order; the ninth agent has the first colour again."""


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
"""The drawing library measures text in this font, so the page must use it as well."""


def config() -> dict[str, Any]:
    """Return the Vega-Lite configuration of all pictures."""
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
    """Replace the colour names by their light values, for a file without the page's style sheet."""
    return re.sub(r"var\((--[a-z0-9-]+)\)", lambda match: LIGHT[match.group(1)], svg)


SHARE = {"domain": [0, 1]}


PER_CENT = {"format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1]}


FIT = {"type": "fit-x", "contains": "padding"}
"""The width includes axes and labels."""


ARIA_LABEL: dict[str, Any] = {"description": {"field": "label_text", "type": "nominal"}}
"""Description of a mark for screen readers, which the page also shows as a tooltip."""


def label_of(agent_findings: SubjectFindings) -> str:
    """Return the escaped label of an agent."""
    return safe(agent_findings.subject.label)


def agent_colour(subjects: Sequence[SubjectFindings], *, legend: bool = True) -> dict[str, Any]:
    """Return the colour channel of agents, which is the same in every picture."""
    labels = [label_of(agent_findings) for agent_findings in subjects]
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
    """Return a legend that fits the width."""
    return {"columns": max(1, width_px // 160)}


WIDE_PX = 720


NARROW_PX = 330
"""Widths of a picture on a screen and on a phone."""


VEGA_LITE = "6.1"
"""The Vega-Lite version of the specifications."""


Spec = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture for any width."""

    name: str
    """File name without its suffix."""
    title: str
    caption: str
    """A description, and how to read the picture."""
    spec: Callable[[int], Spec]
    """Returns the Vega-Lite specification for a width in pixels."""


def draw(picture: Picture, width_px: int, mark: str = "") -> str:
    """Draw a picture as SVG with the colour names of the theme.

    Text is escaped. The SVG has no style attribute and no script, so a strict content security
    policy permits it.

    Args:
        picture: to draw.
        width_px: width, pixels.
        mark: title of a picture of unverified runs, which a reader may see without its page.
    """
    title = {"text": safe(mark), "color": BAD, "anchor": "start", "limit": width_px}
    spec = {
        **picture.spec(width_px),
        "config": config(),
        "padding": 4,
        **({"title": title} if mark else {}),
    }
    # Without allowed URLs the library cannot use the network.
    return vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE, allowed_base_urls=[])
