"""Flips: tasks that one side solved and the other did not."""

from __future__ import annotations

from typing import Any

from fumehood.report.findings import Versus
from fumehood.report.pictures.encodings import FIT, SAID
from fumehood.report.pictures.picture import Picture, Spec
from fumehood.report.pictures.theme import BAD, GOOD
from fumehood.report.safe_text import safe


def flips(versus: Versus, name: str) -> Picture:
    """Return what flipped between two subjects, by fault."""
    first, second = safe(versus.first.label), safe(versus.second.label)
    rows = [
        row
        for group, (fell, _) in versus.comparison.by_fault.items()
        for row in _rows(safe(group), fell)
    ]
    groups = [safe(group) for group in versus.comparison.by_fault]
    caption = (
        f"Pairs of episodes on the same task that only one side solved. Right: won by {second}. "
        f"Left: lost, solved only by {first}."
    )
    most = max((abs(row["pairs"]) for row in rows), default=0) or 1

    def spec(width_px: int) -> Spec:
        x = {
            "field": "pairs",
            "type": "quantitative",
            "scale": {"domain": [-most * 1.15, most * 1.15]},
            "axis": {
                "title": None,
                "labelExpr": "format(abs(datum.value), ',d')",
                "tickMinStep": 1,
                "tickCount": 6,
            },
        }
        return {
            "data": {"values": rows},
            "width": width_px,
            "height": {"step": 28},
            "autosize": FIT,
            "encoding": {
                "y": {"field": "group", "type": "nominal", "sort": groups, "axis": {"title": None}},
                "x": x,
                **SAID,
            },
            "layer": [
                {
                    "mark": {"type": "bar", "height": 14},
                    "encoding": {
                        "color": {
                            "field": "flip",
                            "scale": {"domain": ["lost", "won"], "range": [BAD, GOOD]},
                        }
                    },
                },
                *(_number(flip) for flip in ("won", "lost")),
            ],
        }

    return Picture(name, f"{first} → {second}", caption, spec)


def _number(flip: str) -> dict[str, Any]:
    outward = 6 if flip == "won" else -6
    return {
        "transform": [{"filter": f"datum.flip === '{flip}' && datum.pairs !== 0"}],
        "mark": {"type": "text", "align": "left" if flip == "won" else "right", "dx": outward},
        "encoding": {"text": {"field": "shown", "type": "nominal"}},
    }


def _rows(group: str, fell: Any) -> list[dict[str, Any]]:
    return [
        {
            "group": group,
            "flip": flip,
            "pairs": sign * number,
            "shown": f"{number:,}",
            "said": f"{group}: {number:,} {flip}",
        }
        for flip, sign, number in (("lost", -1, fell.lost), ("won", 1, fell.won))
    ]
