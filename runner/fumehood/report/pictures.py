"""Pictures as Vega-Lite specifications: theme, shared encodings, and drawing to SVG."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import vl_convert

from fumehood.report.findings import SubjectFindings
from fumehood.report.safe_text import safe
from fumehood.report.statistics.intervals import Estimate
from fumehood.report.statistics.pairs import Difference

Spec = Mapping[str, Any]

SERIES = tuple(f"var(--series-{number})" for number in range(8))
"""Colours of agents, in their order; the ninth agent has the first colour again."""

GOOD, BAD, QUIET = "var(--good)", "var(--bad)", "var(--quiet)"

INK, SOFT, LINE = "var(--ink)", "var(--soft)", "var(--line)"

_COLOURS = {
    "--ink": ("#1c2530", "#e6ebf1"),
    "--soft": ("#5b6875", "#9aa7b4"),
    "--line": ("#e1e5ea", "#2b3440"),
    "--quiet": ("#aeb7c1", "#566270"),
    "--good": ("#1a7f5a", "#4cc38a"),
    "--bad": ("#c2452d", "#f0795b"),
    "--series-0": ("#2f6db5", "#6ea8ec"),
    "--series-1": ("#d9822b", "#f0a75c"),
    "--series-2": ("#2a9187", "#4fc1b3"),
    "--series-3": ("#b1457f", "#e27fb3"),
    "--series-4": ("#7b61c4", "#a993ee"),
    "--series-5": ("#8a7a2c", "#c8b75a"),
    "--series-6": ("#5d7f3a", "#94bd67"),
    "--series-7": ("#6f7b88", "#a3afbb"),
}
LIGHT, DARK = ({name: pair[at] for name, pair in _COLOURS.items()} for at in (0, 1))
"""Values of the colours in the light and in the dark theme."""

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
"""Font of pictures, in which the drawing library measures text, and of pages."""

_LABELS = {"labelColor": INK, "labelFontSize": 12}

CONFIG: Mapping[str, Any] = {
    "background": None,
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        **_LABELS,
        **{"titleColor": SOFT, "titleFontSize": 12, "titleFontWeight": "normal"},
        **{"titlePadding": 8, "labelPadding": 8, "labelLimit": 180},
        **{"gridColor": LINE, "domain": False, "ticks": False},
    },
    "axisY": {"titleAlign": "left", "titleAngle": 0, "titleAnchor": "end", "titleY": -10}
    | {"titleX": 0},
    "legend": {
        **_LABELS,
        **{"orient": "top", "labelLimit": 220, "title": None, "offset": 14, "columnPadding": 18},
        **{"symbolType": "circle", "symbolSize": 90, "symbolOpacity": 1},
    },
    "header": {**_LABELS, "labelFontWeight": "bold", "title": None},
    "rule": {"stroke": SOFT},
    "text": {"color": INK, "fontSize": 12},
}
"""The Vega-Lite configuration of all pictures."""


def in_light(svg: str) -> str:
    """Replace the colour names by their light values, for a file without the page's style sheet."""
    return re.sub(r"var\((--[a-z0-9-]+)\)", lambda match: LIGHT[match.group(1)], svg)


def field(name: str, kind: str = "quantitative", **properties: Any) -> dict[str, Any]:
    """Return the encoding of a field."""
    return {"field": name, "type": kind, **properties}


def share(name: str) -> dict[str, Any]:
    """Return the encoding of a share on an axis from 0 to 100 %."""
    axis = {"format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1], "title": None}
    return field(name, scale={"domain": [0, 1]}, axis=axis)


NO_TITLE = {"title": None}

ARIA_LABEL = {"description": field("label_text", "nominal")}
"""Description of a mark for screen readers, which the page also shows as a tooltip."""


def layer(kind: str, encoding: Mapping[str, Any], **properties: Any) -> dict[str, Any]:
    """Return a layer of marks with descriptions."""
    return {"mark": {"type": kind, **properties}, "encoding": {**encoding, **ARIA_LABEL}}


def dots(size: int, **encoding: Any) -> dict[str, Any]:
    """Return a layer of dots."""
    return layer("point", encoding, filled=True, size=size, opacity=1)


def whiskers(**encoding: Any) -> dict[str, Any]:
    """Return a layer of interval lines."""
    return layer("rule", encoding, strokeWidth=2, opacity=0.45)


def frame(width_px: int, rows: Sequence[Mapping[str, Any]], **parts: Any) -> Spec:
    """Return a specification whose width includes axes and labels.

    Args:
        width_px: width, pixels.
        rows: the data of all layers without their own.
        parts: the other parts of the specification.
    """
    size = {"width": width_px, "autosize": {"type": "fit-x", "contains": "padding"}}
    return {"data": {"values": rows}, **size, **parts}


def interval_ends(own: Estimate | Difference) -> tuple[float, float]:
    """Return the ends of the interval, or twice the value if there is none."""
    value = own.value or 0.0
    return (own.interval.low, own.interval.high) if own.interval else (value, value)


def label_of(agent: SubjectFindings) -> str:
    """Return the escaped label of an agent."""
    return safe(agent.subject.label)


def agent_colour(subjects: Sequence[SubjectFindings], width_px: int) -> dict[str, Any]:
    """Return the colour channel of agents, which is the same in every picture."""
    labels = [label_of(agent) for agent in subjects]
    colours = [SERIES[at % len(SERIES)] for at in range(len(labels))]
    legend = legend_columns(width_px) if len(labels) > 1 else None
    scale = {"domain": labels, "range": colours}
    return field("agent", "nominal", sort=labels, scale=scale, legend=legend)


def legend_columns(width_px: int) -> dict[str, Any]:
    """Return a legend that fits the width."""
    return {"columns": max(1, width_px // 160)}


WIDE_PX = 720

NARROW_PX = 330
"""Widths of a picture on a screen and on a phone."""

VEGA_LITE = "6.1"
"""The Vega-Lite version of the specifications."""


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
        "config": CONFIG,
        # Without the font, a browser takes a wider one for the labels at the left.
        "padding": {"left": 14, "top": 4, "right": 8, "bottom": 4},
        **({"title": title} if mark else {}),
    }
    return _drawn(json.dumps(spec))


@lru_cache(maxsize=64)
def _drawn(spec: str) -> str:
    """Draw a specification; a page and the file of a picture often have the same one."""
    # Without allowed URLs the library cannot use the network.
    return vl_convert.vegalite_to_svg(json.loads(spec), vl_version=VEGA_LITE, allowed_base_urls=[])
