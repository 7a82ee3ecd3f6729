"""The schema-repair agent behind a thin policy layer (arXiv 2604.01508).

The paper states that the layer exists and that its results equal those of schema repair; its rules
are not public. Each rule here judges one proposed call. The agent stops at the first call that a
rule rejects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from fumehood_agent.adapter import Action
from fumehood_agent.builtin.schema_repair import SchemaRepair, schema_of
from fumehood_agent.observation import Observation

Rule = Callable[[Action, Observation], bool]
"""Returns whether a call is permitted."""


def is_listed(action: Action, observation: Observation) -> bool:
    """Return whether the tool is offered."""
    return schema_of(observation, action["tool_name"]) is not None


def is_within_budget(action: Action, observation: Observation) -> bool:
    """Return whether a call and a step are left; a budget that is not shown permits the call."""
    left = observation["remaining_budget"]
    return left.get("tool_calls_left") != 0 and left.get("steps_left") != 0


def is_not_forbidden(action: Action, observation: Observation) -> bool:
    """Return whether the instruction does not forbid the tool by name."""
    forbidden = rf"\b(?:do not|don't|never) (?:call|use) {re.escape(action['tool_name'])}\b"
    return re.search(forbidden, observation["instruction"], re.IGNORECASE) is None


RULES: Sequence[Rule] = (is_listed, is_within_budget, is_not_forbidden)


class PolicyLayer(SchemaRepair):
    """Proposes calls as schema repair does, and makes only those that every rule permits."""

    def act(self, observation: Observation) -> Action | None:
        """Return the next call of schema repair; None after the last, or if a rule rejects it."""
        action = super().act(observation)
        if action is not None and all(permits(action, observation) for permits in RULES):
            return action
        return None
