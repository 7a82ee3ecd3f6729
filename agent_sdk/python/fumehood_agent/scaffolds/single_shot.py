"""One question, no second look: all calls are made as the model wrote them, then the work is submitted."""

from __future__ import annotations

from fumehood_agent.errors import Ended
from fumehood_agent.scaffolds.chat_model import Model, WorkOver, tool_schema
from fumehood_agent.scaffolds.moves import GIVE_UP, carry_out, prompt
from fumehood_agent.seat import Seat


class SingleShot:
    """What a model does without seeing what comes of it."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def run(self, seat: Seat) -> None:
        """Ask once."""
        opening = [
            {"role": "system", "content": prompt("single_shot")},
            {"role": "user", "content": seat.task.instruction},
        ]
        tools = [tool_schema(tool) for tool in (*seat.task.tools, GIVE_UP)]
        try:
            said = self._model.ask(opening, tools)
            for call in said.calls:
                _, ended = carry_out(seat, call.name, call.arguments_text)
                if ended:
                    return
            seat.submit(said.text)
        except (Ended, WorkOver):
            return
