"""Runs an object with ``reset()`` and ``act(observation)`` at a seat.

The loop asks the agent for an action and executes it, until the agent submits its last answer,
gives up, or a reply states that the work has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import FunctionType, MethodType
from typing import Any, Protocol, TypedDict

from fumehood_agent.errors import Ended, NotAnAction
from fumehood_agent.observation import Observation, Transcript
from fumehood_agent.seat import JsonObject, Seat

_RETURNS_COROUTINE = 0x80
"""``CO_COROUTINE`` of the module inspect."""


class Action(TypedDict):
    """A call to make."""

    tool_name: str
    args: JsonObject


@dataclass(frozen=True, slots=True)
class Answer:
    """Returned by ``act``: the agent has finished, and this is its answer."""

    text: str
    confidence: float | None = None
    """Probability that the task is done correctly, 0 to 1; None states none."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Returned by ``act``: the task cannot or must not be done."""

    reason: str
    confidence: float | None = None
    """Probability that giving up is right, 0 to 1; None states none."""


class Agent(Protocol):
    """An agent for :func:`work`."""

    def reset(self) -> None:
        """Reset the state of the agent; called once, before the first turn."""
        ...

    def act(self, observation: Observation) -> object:
        """Return the next action; may be a coroutine function.

        Returns:
            An :class:`Action` (or any object with ``tool_name`` and ``args``), :class:`Answer` when
            the agent has finished, None if it has finished without an answer, or :class:`GiveUp`.
            If the user replies to an answer, the next observation contains the message.
        """
        ...


class Ending(Enum):
    """How :func:`work` ended."""

    SUBMITTED = "submitted"
    GAVE_UP = "gave_up"
    ENDED = "ended"
    """The service ended the work."""


def work(agent: Agent, seat: Seat) -> Ending:
    """Run ``agent`` at ``seat`` until it stops or its work ends.

    Coroutines of ``act`` all run in one event loop.

    Raises:
        NotAnAction: the agent returned something that is not an action.
        Refused: the service refused a call of the agent.
        Exception: the agent raised it.
    """
    act: Callable[[Observation], Any] = agent.act
    if not is_coroutine_function(act):
        return _work(agent, act, seat)
    from asyncio import Runner  # Most agents do not need it, and its import takes time.

    with Runner() as runner:
        return _work(agent, lambda observation: runner.run(act(observation)), seat)


def is_coroutine_function(function: object) -> bool:
    """Return whether a call of ``function`` returns a coroutine."""
    plain = function.__func__ if isinstance(function, MethodType) else function
    if isinstance(plain, FunctionType) and not plain.__dict__:
        return bool(plain.__code__.co_flags & _RETURNS_COROUTINE)
    import inspect  # Few agents need it, and its import takes time.

    return inspect.iscoroutinefunction(function)


def _work(agent: Agent, act: Callable[[Observation], object], seat: Seat) -> Ending:
    task = seat.task
    transcript = Transcript(task)
    agent.reset()
    while True:
        action = act(transcript.observation())
        match action:
            case None | Answer():
                text = action.text if action else ""
                seat.submit(text, *_stated(action))
                if seat.task is task:
                    return Ending.SUBMITTED
                task = seat.task
                transcript.begin_turn(text, task)
                continue
            case GiveUp(reason):
                seat.give_up(reason, *_stated(action))
                return Ending.GAVE_UP
        name, arguments = _call_of(action)
        try:
            reply = seat.call(name, arguments)
        except Ended:
            return Ending.ENDED
        if reply.ended:
            return Ending.ENDED
        transcript.record(name, arguments, reply)


def _stated(action: Answer | GiveUp | None) -> tuple[float, ...]:
    """Return the confidence, if one is stated: seats of tests need not take one."""
    return () if action is None or action.confidence is None else (action.confidence,)


def _call_of(action: object) -> tuple[str, Mapping[str, Any]]:
    if isinstance(action, Mapping):
        name, arguments = action.get("tool_name"), action.get("args", {})
    else:
        name, arguments = getattr(action, "tool_name", None), getattr(action, "args", {})
    if not isinstance(name, str) or not isinstance(arguments, Mapping):
        raise NotAnAction(action)
    return name, arguments
