"""One request: all calls of the response are executed, and then its text is submitted."""

from __future__ import annotations

from fumehood_agent.errors import Ended
from fumehood_agent.scaffolds.chat_model import Model, WorkOver, tool_schema
from fumehood_agent.scaffolds.moves import GIVE_UP, carry_out, prompt
from fumehood_agent.seat import Seat


class SingleShot:
    """The model acts without seeing the results of its calls."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def run(self, seat: Seat) -> None:
        """Send one request."""
        opening = [
            {"role": "system", "content": prompt("single_shot")},
            {"role": "user", "content": seat.task.instruction},
        ]
        tools = [tool_schema(tool) for tool in (*seat.task.tools, GIVE_UP)]
        try:
            response = self._model.ask(opening, tools)
            for call in response.calls:
                _, ended = carry_out(seat, call.name, call.arguments_text)
                if ended:
                    return
            seat.submit(response.text)
        except (Ended, WorkOver):
            return
