"""The instruction parser without recovery: it makes one call and stops."""

from __future__ import annotations

from fumehood_agent.adapter import Action
from fumehood_agent.builtin.instruction_parser import InstructionParser
from fumehood_agent.observation import Observation


class InstructionParserNoRecovery(InstructionParser):
    """Makes the call in its instruction once."""

    def act(self, observation: Observation) -> Action | None:
        """Return the call that was read on the first turn, None on every other."""
        return None if observation["transcript"] else self.first_call(observation)
