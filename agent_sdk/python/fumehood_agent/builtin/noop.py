"""An agent that does nothing."""

from __future__ import annotations

from fumehood_agent.observation import Observation


class Noop:
    """Submits at once."""

    def reset(self) -> None:
        """Do nothing."""

    def act(self, observation: Observation) -> None:
        """Submit an empty answer."""
