"""The model writes a plan first, and then works as in :mod:`react`."""

from __future__ import annotations

from fumehood_agent.scaffolds.chat_model import tool_schema
from fumehood_agent.scaffolds.context import Context
from fumehood_agent.scaffolds.moves import prompt
from fumehood_agent.scaffolds.react import React
from fumehood_agent.seat import ModelSeat


class PlanAct(React):
    """Sends one request for a plan before the loop of :class:`React`."""

    def _opening(self, seat: ModelSeat) -> Context:
        tools = "\n".join(str(tool_schema(tool)["function"]) for tool in seat.task.tools)
        request = f"{seat.task.instruction}\n\nTools:\n{tools}"
        plan = self._ask(
            [
                {"role": "system", "content": prompt("plan_act")},
                {"role": "user", "content": request},
            ]
        )
        return self._context(
            {"role": "system", "content": prompt("react")},
            {"role": "user", "content": f"{seat.task.instruction}\n\nYour plan:\n{plan.text}"},
        )
