"""Code as action: the model writes Python code, which runs in the box and calls the tools.

The model reads what its code prints. Variables persist from one block of code to the next.
"""

from __future__ import annotations

import io
import re
import traceback
from contextlib import redirect_stdout, suppress
from typing import Any

from fumehood_agent.errors import Ended
from fumehood_agent.scaffolds.moves import opening, prompt, with_tools
from fumehood_agent.scaffolds.scaffold import Scaffold
from fumehood_agent.seat import Failure, ModelSeat

_BLOCK = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)```", re.DOTALL)


class ToolFailed(Exception):
    """Raised in the model's code if a call fails."""


class _Over(BaseException):
    """Leaves the model's code after the end of the work.

    Code that catches ``Exception`` does not catch it.
    """


class Code(Scaffold):
    """Runs the code of a model until the model submits an answer."""

    def run(self, seat: ModelSeat) -> None:
        """Run until the work has ended."""
        with suppress(_Over):
            super().run(seat)

    def _work(self, seat: ModelSeat) -> None:
        system = with_tools(prompt("code"), seat.task.tools)
        context = self._context(*opening(system, seat.task.instruction))
        names = _names(seat)
        for reply in self._replies(seat, context):
            block = _BLOCK.search(reply.text)
            if block is None:
                seat.submit(reply.text.strip())
                return
            printed = _execute(block[1], names)
            context.add_turn(
                reply.message, {"role": "user", "content": f"Printed:\n{context.cut(printed)}"}
            )
            self.usable()


def _names(seat: ModelSeat) -> dict[str, Any]:
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
