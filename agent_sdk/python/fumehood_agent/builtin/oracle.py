"""An agent that replays a list of calls and ignores their results.

The list is JSON: calls as ``{"tool_name": …, "args": {…}}``, and answers as ``{"submit": "text"}``,
one per turn of the user. ``{"submit_result": "key"}`` submits the text that the last result has
under a key, without the line breaks at its end. The last item may be ``{"give_up": "reason"}``.
After the last item the agent submits an empty answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fumehood_agent.adapter import Action, Answer, GiveUp
from fumehood_agent.errors import UsageError
from fumehood_agent.observation import Observation


@dataclass(frozen=True, slots=True)
class _Result:
    """Submits a text of the last result."""

    key: str

    def answer(self, observation: Observation) -> Answer:
        """Return the answer; empty if the last call failed or its result has no such key."""
        output = observation["transcript"][-1]["output"] if observation["transcript"] else None
        return Answer(str((output or {}).get(self.key, "")).rstrip("\n"))


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
        self._ahead: Iterator[Move | _Result] = iter(self._moves)

    def reset(self) -> None:
        """Start again with the first call."""
        self._ahead = iter(self._moves)

    def act(self, observation: Observation) -> Move | None:
        """Return the next move; None after the last."""
        move = next(self._ahead, None)
        return move.answer(observation) if isinstance(move, _Result) else move


def _move(item: Any, index: int) -> Move | _Result:
    match item:
        case {"tool_name": str(name), "args": dict(arguments), **rest} if not rest:
            return {"tool_name": name, "args": arguments}
        case {"submit": str(answer), **rest} if not rest:
            return Answer(answer)
        case {"submit_result": str(key), **rest} if not rest:
            return _Result(key)
        case {"give_up": str(reason), **rest} if not rest:
            return GiveUp(reason)
    raise UsageError(f"call {index} is none of tool_name with args, submit, submit_result, give_up")
