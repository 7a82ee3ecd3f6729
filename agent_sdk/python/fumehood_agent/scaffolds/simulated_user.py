"""A person who wants something, played by a model at a seat beside the agent."""

from __future__ import annotations

from fumehood_agent.scaffolds.chat_model import ModelRefused
from fumehood_agent.scaffolds.react import React
from fumehood_agent.seat import Seat, Tool

LOST = "I do not know what to say to that. ###OUT-OF-SCOPE###"


class SimulatedUser(React):
    """Says one message a turn, and uses the person's own tools where it has some."""

    PROMPT = "simulated_user"
    OWN_TOOLS: tuple[Tool, ...] = ()
    """A person who has enough says so; nobody gives up a talk."""

    def run(self, seat: Seat) -> None:
        """Say one message; what the model refuses to answer ends the talk.

        Else whoever it talks to could make it break off, by words that no model takes.
        """
        try:
            super().run(seat)
        except ModelRefused:
            seat.submit(LOST)
