"""An agent that does nothing: what is left when it ran is what was there before."""

from __future__ import annotations

from fumehood_agent.observation import Observation


class Noop:
    """Submits at once."""

    def reset(self) -> None:
        """Do nothing."""

    def act(self, observation: Observation) -> None:
        """Say that the work is done."""
