"""Runs an object with ``reset()`` and ``act(observation)`` at a seat.

The loop is the whole contract: ask the agent; carry out what it says; stop when it is done, gives up, or
the reply says that the work has ended. The agent is never asked after that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypedDict

from fumehood_agent.errors import Ended, NotAnAction
from fumehood_agent.observation import Observation, Transcript
from fumehood_agent.seat import JsonObject, Seat


class Action(TypedDict):
    """A call to make."""

    tool_name: str
    args: JsonObject


@dataclass(frozen=True, slots=True)
class Answer:
    """Returned by ``act``: what was asked is done, and this is what came of it."""

    text: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Returned by ``act``: the work cannot or must not be done."""

    reason: str


class Agent(Protocol):
    """What :func:`work` runs."""

    def reset(self) -> None:
        """Forget everything; called once before the first turn."""
        ...

    def act(self, observation: Observation) -> object:
        """Return the next move.

        Returns:
            An :class:`Action` (or any object with ``tool_name`` and ``args``), None when what was asked is
            done, :class:`Answer` when it is done and there is something to say, or :class:`GiveUp`. Asked
            again after an answer, the agent finds the user's next message in the observation.
        """
        ...


class Ending(Enum):
    """How :func:`work` came to its end."""

    SUBMITTED = "submitted"
    GAVE_UP = "gave_up"
    ENDED = "ended"
    """The other side ended the work."""


def work(agent: Agent, seat: Seat) -> Ending:
    """Let ``agent`` work at ``seat`` until it stops or its work is ended.

    Raises:
        NotAnAction: the agent returned something that cannot be carried out.
        Refused: the agent made a call that was not let through.
        Exception: whatever the agent raises.
    """
    task = seat.task
    transcript = Transcript(task)
    agent.reset()
    while True:
        move = agent.act(transcript.observation())
        match move:
            case None | Answer():
                text = move.text if move else ""
                seat.submit(text)
                if seat.task is task:
                    return Ending.SUBMITTED
                task = seat.task
                transcript.begin_turn(text, task)
                continue
            case GiveUp(reason):
                seat.give_up(reason)
                return Ending.GAVE_UP
        name, arguments = _call_of(move)
        try:
            reply = seat.call(name, arguments)
        except Ended:
            return Ending.ENDED
        if reply.ended:
            return Ending.ENDED
        transcript.record(name, arguments, reply)


def _call_of(move: object) -> tuple[str, Mapping[str, Any]]:
    if isinstance(move, Mapping):
        name, arguments = move.get("tool_name"), move.get("args", {})
    else:
        name, arguments = getattr(move, "tool_name", None), getattr(move, "args", {})
    if not isinstance(name, str) or not isinstance(arguments, Mapping):
        raise NotAnAction(move)
    return name, arguments
