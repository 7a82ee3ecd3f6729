"""The model writes a plan first, and then works as in :mod:`react`."""

from __future__ import annotations

from fumehood_agent.scaffolds.chat_model import tool_schema
from fumehood_agent.scaffolds.context import Context
from fumehood_agent.scaffolds.moves import opening, prompt
from fumehood_agent.scaffolds.react import React
from fumehood_agent.seat import ModelSeat


class PlanAct(React):
    """Sends one request for a plan before the loop of :class:`React`."""

    def _opening(self, seat: ModelSeat) -> Context:
        tools = "\n".join(str(tool_schema(tool)["function"]) for tool in seat.task.tools)
        request = f"{seat.task.instruction}\n\nTools:\n{tools}"
        plan = self._ask(opening(prompt("plan_act"), request))
        user = f"{seat.task.instruction}\n\nYour plan:\n{plan.text}"
        return self._context(*opening(prompt("react"), user))
