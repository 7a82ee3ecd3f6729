"""How pictures look. Colours are names with a light and a dark value; a file has the light ones."""

from __future__ import annotations

import re
from typing import Any

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
