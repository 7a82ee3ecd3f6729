"""Differences: how much better or worse each agent is than the one it is compared with, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fumehood.report import wording
from fumehood.report.findings import Versus
from fumehood.report.headline import why_no_comparison
from fumehood.report.pictures.encodings import FIT, SAID
from fumehood.report.pictures.picture import Picture, Spec
from fumehood.report.pictures.theme import BAD, GOOD, QUIET, SOFT
from fumehood.report.safe_text import safe
from fumehood.report.statistics.metrics import Unit

SIGNS = ("better", "worse", "alike")


def tells_a_difference(versus: Versus) -> bool:
    """Return whether enough pairs have a verdict for one number."""
    pairing = versus.comparison.pairing
    return why_no_comparison(len(pairing.pairs), pairing.undecided) is None


def differences(versus: Sequence[Versus]) -> Picture:
    """Return the differences in success of comparisons that tell one."""
    rows = [_row(one) for one in versus]
    first = safe(versus[0].first.label)
    caption = (
        f"Success less that of {first} on the same tasks, in percentage points. Lines are 95 % intervals "
        "over tasks, grey where they hold zero."
    )

    def spec(width_px: int) -> Spec:
        y = {
            "field": "agent",
            "type": "nominal",
            "sort": [row["agent"] for row in rows],
            "axis": {"title": None},
        }
        low = {
            "field": "low",
            "type": "quantitative",
            "axis": {"title": None, "format": "+d", "tickCount": 5},
        }
        colour = {
            "field": "sign",
            "scale": {"domain": list(SIGNS), "range": [GOOD, BAD, QUIET]},
            "legend": None,
        }
        shared = {"y": y, "color": colour, **SAID}
        value = {"field": "value", "type": "quantitative"}
        return {
            "data": {"values": rows},
            "width": width_px,
            "height": {"step": 28},
            "autosize": FIT,
            "layer": [
                {
                    "data": {"values": [{"at": 0}]},
                    "mark": {"type": "rule", "color": SOFT},
                    "encoding": {"x": {"field": "at", "type": "quantitative"}},
                },
                {
                    "mark": {"type": "rule", "strokeWidth": 3, "strokeCap": "round"},
                    "encoding": {"x": low, "x2": {"field": "high"}, **shared},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                    "encoding": {"x": value, **shared},
                },
            ],
        }

    return Picture("differences", f"Compared with {first}", caption, spec)


def _row(versus: Versus) -> dict[str, Any]:
    found = versus.comparison.success
    value = found.value or 0.0
    low, high = (found.interval.low, found.interval.high) if found.interval else (value, value)
    agent = safe(versus.second.label)
    return {
        "agent": agent,
        "value": value * 100,
        "low": low * 100,
        "high": high * 100,
        "sign": "better" if low > 0 else "worse" if high < 0 else "alike",
        "said": f"{agent}: {wording.change(found, Unit.SHARE)} on {found.over:,} pairs",
    }
