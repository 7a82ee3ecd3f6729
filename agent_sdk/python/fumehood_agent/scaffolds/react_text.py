"""Reason, act, observe in plain text: for models without tool calling, and to measure its effect.

A response contains the lines ``Action: NAME`` and ``Input: {JSON}``, or ``Answer:`` followed by the
answer.
"""

from __future__ import annotations

import json
import re

from fumehood_agent.errors import Ended
from fumehood_agent.scaffolds.chat_model import Model, WorkOver
from fumehood_agent.scaffolds.context import Context
from fumehood_agent.scaffolds.moves import GIVE_UP, carry_out, prompt
from fumehood_agent.scaffolds.react import TURNS_MAX
from fumehood_agent.seat import Seat

_ACTION = re.compile(r"^Action:[ \t]*(\S+)[ \t]*\n+Input:[ \t]*(.*)", re.MULTILINE | re.DOTALL)
_ANSWER = re.compile(r"^Answer:[ \t]*(.*)", re.MULTILINE | re.DOTALL)
_NEITHER = 'Write "Action:" and "Input:" lines to call a tool, or an "Answer:" line to end.'


class ReactText:
    """The loop of :class:`~fumehood_agent.scaffolds.react.React` in plain text."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def run(self, seat: Seat) -> None:
        """Run until the work has ended."""
        try:
            self._work(seat)
        except (Ended, WorkOver):
            return

    def _work(self, seat: Seat) -> None:
        tools = "\n".join(
            f"{tool.name}: {tool.description} {json.dumps(tool.parameters)}"
            for tool in (*seat.task.tools, GIVE_UP)
        )
        context = Context(
            {"role": "system", "content": f"{prompt('react_text')}\n\nTools:\n{tools}"},
            {"role": "user", "content": seat.task.instruction},
        )
        for _ in range(TURNS_MAX):
            response = self._model.ask(context.messages())
            answer, action = _ANSWER.search(response.text), _ACTION.search(response.text)
            if answer is not None and (action is None or answer.start() < action.start()):
                seat.submit(answer[1].strip())
                return
            result, ended = (
                (_NEITHER, False) if action is None else _act(seat, action[1], action[2])
            )
            if ended:
                return
            observed = {"role": "user", "content": f"Observation: {context.cut(result)}"}
            context.add_turn(response.message, observed)
        seat.give_up(f"no end after {TURNS_MAX} turns")


def _act(seat: Seat, name: str, text: str) -> tuple[str, bool]:
    """Execute the call whose arguments ``text`` begins with; the rest of the text is ignored."""
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        end = len(text)
    return carry_out(seat, name, text[:end])
