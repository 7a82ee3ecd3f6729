"""A person who wants something, played by a model at a seat beside the agent."""

from __future__ import annotations

from glovebox_agent.scaffolds.react import React
from glovebox_agent.seat import Tool


class SimulatedUser(React):
    """Says one message a turn, and uses the person's own tools where it has some."""

    PROMPT = "simulated_user"
    OWN_TOOLS: tuple[Tool, ...] = ()
    """A person who has enough says so; nobody gives up a talk."""
