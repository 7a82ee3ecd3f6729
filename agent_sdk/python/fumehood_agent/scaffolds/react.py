"""Reason, act, observe: the model calls tools until it responds with text only."""

from __future__ import annotations

from fumehood_agent.errors import Ended
from fumehood_agent.scaffolds.chat_model import Model, ModelReply, WorkOver, tool_schema
from fumehood_agent.scaffolds.context import Context
from fumehood_agent.scaffolds.moves import GIVE_UP, carry_out, prompt
from fumehood_agent.seat import JsonObject, Seat, Tool

TURNS_MAX = 64
"""Responses of the model. The budget of the task usually ends the work before."""


class React:
    """Native tool calling; a response without calls is submitted as the answer."""

    PROMPT = "react"
    """Name of the file with the system prompt."""
    OWN_TOOLS: tuple[Tool, ...] = (GIVE_UP,)
    """Tools in addition to those of the seat."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._context: Context | None = None

    def run(self, seat: Seat) -> None:
        """Work on the last message of the user; another call continues the conversation."""
        try:
            self._work(seat, self._listen(seat))
        except (Ended, WorkOver):
            return

    def _listen(self, seat: Seat) -> Context:
        if self._context is None:
            self._context = self._opening(seat)
        else:
            self._context.add_turn({"role": "user", "content": seat.task.instruction})
        return self._context

    def _opening(self, seat: Seat) -> Context:
        return Context(
            {"role": "system", "content": prompt(self.PROMPT)},
            {"role": "user", "content": seat.task.instruction},
        )

    def _work(self, seat: Seat, context: Context) -> None:
        tools = [tool_schema(tool) for tool in (*seat.task.tools, *self.OWN_TOOLS)]
        for _ in range(TURNS_MAX):
            response = self._model.ask(context.messages(), tools)
            if not response.calls:
                context.add_turn(response.message)
                seat.submit(response.text)
                return
            results, ended = self._carry_out(seat, context, response)
            if ended:
                return
            context.add_turn(response.message, *results)
        seat.give_up(f"no end after {TURNS_MAX} turns")

    def _carry_out(
        self, seat: Seat, context: Context, response: ModelReply
    ) -> tuple[list[JsonObject], bool]:
        """Execute all calls of one response, in order, until the work ends."""
        results: list[JsonObject] = []
        for call in response.calls:
            text, ended = carry_out(seat, call.name, call.arguments_text)
            if ended:
                return results, True
            results.append(
                {"role": "tool", "tool_call_id": call.call_id, "content": context.cut(text)}
            )
        return results, False
