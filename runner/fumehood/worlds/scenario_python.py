"""A scenario in which declared parts have Python functions (docs/scenarios.md).

The functions run in a checker process without rights, as those of ``declared_python``.
"""

from __future__ import annotations

from fumehood.worlds import declared_python
from fumehood.worlds.scenario import PARTS, Scenario

CHECKER = declared_python.CHECKER
"""Answers the calls."""


class ScenarioPython(Scenario):
    """State: as in ``scenario``; the toolset of a part can contain ``python``."""

    toolset_id = "scenario_python"
    parts = (*PARTS, "declared_python")
