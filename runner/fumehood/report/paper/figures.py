"""The paper's figures: success within a budget and success by fault, with the published numbers as rings."""

from __future__ import annotations

from typing import Any

from fumehood.report.findings import Findings
from fumehood.report.paper.published import AREA, TABLE_2
from fumehood.report.pictures.budget import budgeted_success
from fumehood.report.pictures.picture import Picture, Spec
from fumehood.report.pictures.success import success_by_fault
from fumehood.report.statistics.metrics import BUDGETS


def figures(findings: Findings) -> tuple[Picture, ...]:
    """Return all figures."""
    return _with_rings(success_by_fault(findings), _by_fault()), _with_rings(
        budgeted_success(findings), _by_budget()
    )


def _by_fault() -> dict[str, Any]:
    rows = [
        {
            "agent": agent,
            "group": fault,
            "value": metrics["task_success"],
            "said": f"{agent}, {fault}: published",
        }
        for agent, faults in TABLE_2.items()
        for fault, metrics in faults.items()
    ]
    return {"data": {"values": rows}, "encoding": {"x": {"field": "value", "type": "quantitative"}}}


def _by_budget() -> dict[str, Any]:
    # The paper gives the area under a flat curve, so the curve itself is at that height.
    rows = [
        {"agent": agent, "k": budget, "s": area, "said": f"{agent}, S({budget}): published"}
        for agent, area in AREA.items()
        for budget in BUDGETS
    ]
    x = {"field": "k", "type": "quantitative"}
    return {
        "data": {"values": rows},
        "encoding": {"x": x, "y": {"field": "s", "type": "quantitative"}},
    }


def _with_rings(picture: Picture, layer: dict[str, Any]) -> Picture:
    ring = {"type": "point", "filled": False, "size": 190, "strokeWidth": 1.2, "opacity": 1}
    description = {"description": {"field": "said", "type": "nominal"}}
    rings = {**layer, "mark": ring, "encoding": {**layer["encoding"], **description}}

    def spec(width_px: int) -> Spec:
        drawn = dict(picture.spec(width_px))
        return {**drawn, "layer": [*drawn["layer"], rings]}

    caption = f"{picture.caption} Rings are the published numbers."
    return Picture(f"figure_{picture.name}", picture.title, caption, spec)
