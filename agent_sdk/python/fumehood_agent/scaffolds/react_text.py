"""Reason, act, observe in plain text: for models without tool calling, and to measure its effect.

A response contains the lines ``Action: NAME`` and ``Input: {JSON}``, or ``Answer:`` followed by the
answer.
"""

from __future__ import annotations

import json
import re

from fumehood_agent.scaffolds.dialects import read_arguments
from fumehood_agent.scaffolds.moves import GIVE_UP, carry_out, opening, prompt, with_tools
from fumehood_agent.scaffolds.scaffold import Scaffold
from fumehood_agent.seat import ModelProblem, ModelSeat

_ACTION = re.compile(r"^Action:[ \t]*(\S+)[ \t]*\n+Input:[ \t]*(.*)", re.MULTILINE | re.DOTALL)
_ANSWER = re.compile(r"^Answer:[ \t]*(.*)", re.MULTILINE | re.DOTALL)
_NEITHER = 'Write "Action:" and "Input:" lines to call a tool, or an "Answer:" line to end.'


class ReactText(Scaffold):
    """The loop of :class:`~fumehood_agent.scaffolds.react.React` in plain text."""

    def _work(self, seat: ModelSeat) -> None:
        system = with_tools(prompt("react_text"), (*seat.task.tools, GIVE_UP))
        context = self._context(*opening(system, seat.task.instruction))
        for reply in self._replies(seat, context):
            answer, action = _ANSWER.search(reply.text), _ACTION.search(reply.text)
            if answer is not None and (action is None or answer.start() < action.start()):
                seat.submit(answer[1].strip())
                return
            problem = None
            if action is None:
                result, problem = _NEITHER, ModelProblem.REPLY_UNPARSEABLE
            else:
                arguments_text = _beginning(action[2])
                result, ended = carry_out(seat, action[1], arguments_text)
                if ended:
                    return
                if read_arguments(arguments_text) is None:
                    problem = ModelProblem.ARGUMENTS_UNPARSEABLE
            observed = {"role": "user", "content": f"Observation: {context.cut(result)}"}
            context.add_turn(reply.message, observed)
            if problem is None:
                self.usable()
            else:
                seat.report(problem)
                self.unusable(problem)


def _beginning(text: str) -> str:
    """Return the JSON value that ``text`` begins with; the whole text if there is none."""
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return text
    return text[:end]
