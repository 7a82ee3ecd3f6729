"""Reason, act, observe: the model calls tools in its own way until it answers in words alone."""

from __future__ import annotations

from fumehood_agent.errors import Ended
from fumehood_agent.scaffolds.chat_model import Model, Said, WorkOver, tool_schema
from fumehood_agent.scaffolds.context import Context
from fumehood_agent.scaffolds.moves import GIVE_UP, carry_out, prompt
from fumehood_agent.seat import JsonObject, Seat, Tool

TURNS_MAX = 64
"""Of the model. A task's own budget is meant to end the work before."""


class React:
    """Native tool calling; an answer without calls is the answer to the task."""

    PROMPT = "react"
    """Name of the file with what the model is told first."""
    OWN_TOOLS: tuple[Tool, ...] = (GIVE_UP,)
    """RestrictTools beside those of the seat."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._context: Context | None = None

    def run(self, seat: Seat) -> None:
        """Work on the user's last message; whoever runs it again goes on with the conversation."""
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
            said = self._model.ask(context.messages(), tools)
            if not said.calls:
                context.add_turn(said.message)
                seat.submit(said.text)
                return
            told, ended = self._carry_out(seat, context, said)
            if ended:
                return
            context.add_turn(said.message, *told)
        seat.give_up(f"no end after {TURNS_MAX} turns")

    def _carry_out(self, seat: Seat, context: Context, said: Said) -> tuple[list[JsonObject], bool]:
        """Make all calls of one turn, in order; stop where the work ends."""
        told: list[JsonObject] = []
        for call in said.calls:
            text, ended = carry_out(seat, call.name, call.arguments_text)
            if ended:
                return told, True
            told.append(
                {"role": "tool", "tool_call_id": call.call_id, "content": context.cut(text)}
            )
        return told, False
