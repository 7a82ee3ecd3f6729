"""The dimensions of `fumehood compare --by`."""

from __future__ import annotations

from fumehood.core.registry import Registry
from fumehood.report.compare.dimension import Dimension

DIMENSIONS: Registry[type[Dimension]] = Registry(
    "comparison dimension",
    {
        "agent": "fumehood.report.compare.by_agent:ByAgent",
        "scaffold": "fumehood.report.compare.by_scaffold:ByScaffold",
        "budget": "fumehood.report.compare.by_factor:ByBudget",
        "faults": "fumehood.report.compare.by_factor:ByFaults",
        "model": "fumehood.report.compare.by_factor:ByModel",
        "data-mode": "fumehood.report.compare.by_data_mode:ByDataMode",
    },
)
