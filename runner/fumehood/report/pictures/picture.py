"""What a picture is, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import vl_convert

from fumehood.report.pictures.theme import config

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
