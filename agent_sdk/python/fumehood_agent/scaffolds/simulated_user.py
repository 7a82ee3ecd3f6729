"""A user, simulated by a model at another seat than the agent's."""

from __future__ import annotations

from fumehood_agent.scaffolds.chat_model import ModelRefused
from fumehood_agent.scaffolds.react import React
from fumehood_agent.seat import Seat, Tool

LOST = "I do not know what to say to that. ###OUT-OF-SCOPE###"


class SimulatedUser(React):
    """Sends one message per turn, and may use the tools of its seat."""

    PROMPT = "simulated_user"
    OWN_TOOLS: tuple[Tool, ...] = ()
    """A simulated user ends the conversation with a message and cannot give up."""

    def run(self, seat: Seat) -> None:
        """Send one message. If the provider rejects the request, the conversation ends.

        Otherwise an agent could break the conversation with text that the provider rejects.
        """
        try:
            super().run(seat)
        except ModelRefused:
            seat.submit(LOST)
