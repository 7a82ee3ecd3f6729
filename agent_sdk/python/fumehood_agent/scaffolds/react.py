"""Reason, act, observe: the model calls tools until it responds with text only."""

from __future__ import annotations

from collections.abc import Iterable

from fumehood_agent.scaffolds.chat_model import Model, tool_schema
from fumehood_agent.scaffolds.context import Context
from fumehood_agent.scaffolds.dialects import ModelReply
from fumehood_agent.scaffolds.moves import GIVE_UP, carry_out, opening, prompt
from fumehood_agent.scaffolds.scaffold import Scaffold
from fumehood_agent.seat import JsonObject, ModelProblem, ModelSeat, Tool


class React(Scaffold):
    """Native tool calling; a response without calls is submitted as the answer."""

    PROMPT = "react"
    """Name of the file with the system prompt."""
    OWN_TOOLS: tuple[Tool, ...] = (GIVE_UP,)
    """Tools in addition to those of the seat."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._conversation: Context | None = None

    def _work(self, seat: ModelSeat) -> None:
        """Work on the last message of the user; another call continues the conversation."""
        if self._conversation is None:
            self._conversation = self._opening(seat)
        else:
            self._conversation.add_turn({"role": "user", "content": seat.task.instruction})
        self._act(seat, self._conversation)

    def _opening(self, seat: ModelSeat) -> Context:
        return self._context(*opening(prompt(self.PROMPT), seat.task.instruction))

    def _act(self, seat: ModelSeat, context: Context) -> None:
        tools = [tool_schema(tool) for tool in (*seat.task.tools, *self._own_tools(seat))]
        for reply in self._replies(seat, context, tools):
            if not reply.calls:
                context.add_turn(reply.message)
                seat.submit(reply.text)
                return
            results, ended = self._carry_out(seat, context, reply)
            if ended:
                return
            context.add_turn(reply.message, *results)
            if all(call.arguments is None for call in reply.calls):
                self.unusable(ModelProblem.ARGUMENTS_UNPARSEABLE)
            else:
                self.usable()

    def _own_tools(self, seat: ModelSeat) -> Iterable[Tool]:
        """Return the tools in addition to those of the seat."""
        return self.OWN_TOOLS

    def _call(self, seat: ModelSeat, name: str, arguments_text: str) -> tuple[str, bool]:
        """Execute a call; see :func:`carry_out`."""
        return carry_out(seat, name, arguments_text)

    def _carry_out(
        self, seat: ModelSeat, context: Context, reply: ModelReply
    ) -> tuple[list[JsonObject], bool]:
        """Execute all calls of one reply, in order, until the work ends."""
        results: list[JsonObject] = []
        for call in reply.calls:
            text, ended = self._call(seat, call.name, call.arguments_text)
            if ended:
                return results, True
            results.append(call.result(context.cut(text)))
        return results, False
