"""A user, simulated by a model at another seat than the agent's."""

from __future__ import annotations

from fumehood_agent.scaffolds.chat_model import ModelUnavailable
from fumehood_agent.scaffolds.react import React
from fumehood_agent.seat import ModelProblem, ModelSeat, Tool

LOST = "I do not know what to say to that. ###OUT-OF-SCOPE###"


class SimulatedUser(React):
    """Sends one message per turn, and may use the tools of its seat."""

    PROMPT = "simulated_user"
    OWN_TOOLS: tuple[Tool, ...] = ()
    """A simulated user ends the conversation with a message and cannot give up."""

    def run(self, seat: ModelSeat) -> None:
        """Send one message. If the model does not answer this request, the conversation ends.

        The gateway ends the work if the provider itself does not work.
        """
        try:
            super().run(seat)
        except ModelUnavailable:
            seat.submit(LOST)

    def _stopped(self, seat: ModelSeat, problem: ModelProblem) -> None:
        # An agent could otherwise break the conversation with text that the provider rejects.
        seat.submit(LOST)
