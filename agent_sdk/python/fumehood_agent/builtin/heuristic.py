"""An agent that calls each tool once, with default arguments, and then stops."""

from __future__ import annotations

from fumehood_agent.adapter import Action
from fumehood_agent.builtin.schema_repair import SchemaRepair
from fumehood_agent.observation import Observation


class Heuristic(SchemaRepair):
    """Calls each listed tool once, ignores the results, and stops."""

    def act(self, observation: Observation) -> Action | None:
        """Return a default call of the next tool; None after the last."""
        return self.open_next(observation)
