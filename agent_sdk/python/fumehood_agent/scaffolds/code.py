"""Code as action: the model writes Python code, which runs in the box and calls the tools.

The model reads what its code prints. Variables persist from one block of code to the next.
"""

from __future__ import annotations

import io
import json
import re
import traceback
from contextlib import redirect_stdout
from typing import Any

from fumehood_agent.errors import Ended
from fumehood_agent.scaffolds.chat_model import Model, WorkOver
from fumehood_agent.scaffolds.context import Context
from fumehood_agent.scaffolds.moves import prompt
from fumehood_agent.scaffolds.react import TURNS_MAX
from fumehood_agent.seat import Failure, Seat

_BLOCK = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)```", re.DOTALL)


class ToolFailed(Exception):
    """Raised in the model's code if a call fails."""


class _Over(BaseException):
    """Leaves the model's code after the end of the work.

    Code that catches ``Exception`` does not catch it.
    """


class Code:
    """Runs the code of a model until the model submits an answer."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def run(self, seat: Seat) -> None:
        """Run until the work has ended."""
        try:
            self._work(seat)
        except (Ended, WorkOver, _Over):
            return

    def _work(self, seat: Seat) -> None:
        tools = "\n".join(
            f"{tool.name}: {tool.description} {json.dumps(tool.parameters)}"
            for tool in seat.task.tools
        )
        context = Context(
            {"role": "system", "content": f"{prompt('code')}\n\nTools:\n{tools}"},
            {"role": "user", "content": seat.task.instruction},
        )
        names = _names(seat)
        for _ in range(TURNS_MAX):
            response = self._model.ask(context.messages())
            block = _BLOCK.search(response.text)
            if block is None:
                seat.submit(response.text.strip())
                return
            printed = _execute(block[1], names)
            context.add_turn(
                response.message, {"role": "user", "content": f"Printed:\n{context.cut(printed)}"}
            )
        seat.give_up(f"no end after {TURNS_MAX} turns")


def _names(seat: Seat) -> dict[str, Any]:
    def call(name: str, **arguments: Any) -> dict[str, Any]:
        reply = seat.call(name, arguments)
        if reply.ended:
            raise _Over
        if isinstance(reply.result, Failure):
            raise ToolFailed(f"{reply.result.code}: {reply.result.message}")
        return reply.result.output

    def submit(answer: str = "") -> None:
        seat.submit(str(answer))
        raise _Over

    def give_up(reason: str) -> None:
        seat.give_up(str(reason))
        raise _Over

    return {"call": call, "submit": submit, "give_up": give_up, "ToolFailed": ToolFailed}


def _execute(code: str, names: dict[str, Any]) -> str:
    """Run a block of code; return its output and the traceback, if it failed."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        try:
            exec(compile(code, "code", "exec"), names)
        except (Ended, KeyboardInterrupt):
            raise
        except (Exception, SystemExit):
            print(traceback.format_exc(limit=-2))
    return printed.getvalue() or "(nothing)"
