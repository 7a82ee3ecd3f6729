"""One request: all calls of the response are executed, and then its text is submitted."""

from __future__ import annotations

from fumehood_agent.scaffolds.chat_model import tool_schema
from fumehood_agent.scaffolds.moves import GIVE_UP, carry_out, opening, prompt
from fumehood_agent.scaffolds.scaffold import Scaffold, Stop
from fumehood_agent.seat import ModelProblem, ModelSeat


class SingleShot(Scaffold):
    """The model acts without seeing the results of its calls."""

    def _work(self, seat: ModelSeat) -> None:
        tools = [tool_schema(tool) for tool in (*seat.task.tools, GIVE_UP)]
        reply = self._ask(opening(prompt("single_shot"), seat.task.instruction), tools)
        if reply.truncated:
            raise Stop(ModelProblem.REPLY_TRUNCATED)
        if reply.calls and all(call.arguments is None for call in reply.calls):
            raise Stop(ModelProblem.ARGUMENTS_UNPARSEABLE)
        for call in reply.calls:
            _, ended = carry_out(seat, call.name, call.arguments_text)
            if ended:
                return
        seat.submit(reply.text)
