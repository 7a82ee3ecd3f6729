"""An agent that replays a list of calls and ignores their results.

The list is JSON: calls as ``{"tool_name": …, "args": {…}}``, and answers as ``{"submit": "text"}``,
one per turn of the user. The last item may be ``{"give_up": "reason"}``. After the last item the
agent submits an empty answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fumehood_agent.adapter import Action, Answer, GiveUp
from fumehood_agent.errors import UsageError
from fumehood_agent.observation import Observation

Move = Action | Answer | GiveUp


class Oracle:
    """Replays a list of calls."""

    def __init__(self, calls: object) -> None:
        """Read the list of calls, parsed JSON in the form above.

        Raises:
            UsageError: it is not of that form; the message names the item.
        """
        if not isinstance(calls, list):
            raise UsageError(f"the calls are {type(calls).__name__}; expected a list")
        self._moves = [_move(item, index) for index, item in enumerate(calls)]
        for index, move in enumerate(self._moves[:-1]):
            if isinstance(move, GiveUp):
                raise UsageError(f"call {index} ends the work, but others follow")
        self._ahead: Iterator[Move] = iter(self._moves)

    def reset(self) -> None:
        """Start again with the first call."""
        self._ahead = iter(self._moves)

    def act(self, observation: Observation) -> Move | None:
        """Return the next move; None after the last."""
        return next(self._ahead, None)


def _move(item: Any, index: int) -> Move:
    match item:
        case {"tool_name": str(name), "args": dict(arguments), **rest} if not rest:
            return {"tool_name": name, "args": arguments}
        case {"submit": str(answer), **rest} if not rest:
            return Answer(answer)
        case {"give_up": str(reason), **rest} if not rest:
            return GiveUp(reason)
    raise UsageError(f"call {index} is none of tool_name with args, submit, give_up")
