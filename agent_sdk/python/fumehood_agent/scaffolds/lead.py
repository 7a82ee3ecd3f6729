"""Leads a team: each member is a tool of the model and keeps its conversation between orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fumehood_agent.errors import Refused
from fumehood_agent.scaffolds.chat_model import Model
from fumehood_agent.scaffolds.dialects import read_arguments
from fumehood_agent.scaffolds.react import React
from fumehood_agent.seat import ModelSeat, Tool

ORDER = {
    "type": "object",
    "properties": {"order": {"type": "string"}},
    "required": ["order"],
    "additionalProperties": False,
}


class Lead(React):
    """React with a tool for each member of the team; without members it is React.

    A member that is also a scaffold continues its conversation with each order.
    """

    PROMPT = "lead"

    def __init__(self, model: Model, members: Sequence[str] = ()) -> None:
        """Create the agent.

        Args:
            model: plans and gives orders.
            members: seats to which this seat gives orders, if it has any.
        """
        super().__init__(model)
        self._members = members

    def _own_tools(self, seat: ModelSeat) -> Iterator[Tool]:
        yield from self.OWN_TOOLS
        for tool, member in self._tools_of_members(seat).items():
            yield Tool(tool, ORDER, f"Give work to {member} and return its answer.")

    def _tools_of_members(self, seat: ModelSeat) -> Mapping[str, str]:
        taken = {tool.name for tool in seat.task.tools}
        named = ((f"ask_{member}", member) for member in self._members)
        return {f"{tool}_" if tool in taken else tool: member for tool, member in named}

    def _call(self, seat: ModelSeat, name: str, arguments_text: str) -> tuple[str, bool]:
        member = self._tools_of_members(seat).get(name)
        arguments = read_arguments(arguments_text)
        if member is None or arguments is None:
            return super()._call(seat, name, arguments_text)
        order = str(arguments.get("order") or "").strip()
        if not order:
            return "The order must not be empty.", False
        before = seat.task
        try:
            accepted = seat.submit(f"@{member}: {order}")
        except Refused as refused:
            return str(refused), False
        # The answer of the member is the next message to this seat, if the conversation continues.
        return seat.task.instruction, not accepted or seat.task is before
