"""First a plan in words, then the plan is carried out as :mod:`react` does it."""

from __future__ import annotations

from fumehood_agent.scaffolds.chat_model import tool_schema
from fumehood_agent.scaffolds.context import Context
from fumehood_agent.scaffolds.moves import prompt
from fumehood_agent.scaffolds.react import React
from fumehood_agent.seat import Seat


class PlanAct(React):
    """One question more than :class:`React`, asked before the first call."""

    def _opening(self, seat: Seat) -> Context:
        tools = "\n".join(str(tool_schema(tool)["function"]) for tool in seat.task.tools)
        asked = f"{seat.task.instruction}\n\nTools:\n{tools}"
        plan = self._model.ask(
            [{"role": "system", "content": prompt("plan_act")}, {"role": "user", "content": asked}]
        )
        return Context(
            {"role": "system", "content": prompt("react")},
            {"role": "user", "content": f"{seat.task.instruction}\n\nYour plan:\n{plan.text}"},
        )
