"""What a way of replaying is, and how its result is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fumehood.core.errors import FumehoodError as RunnerError
from fumehood.core.json_values import copy_object
from fumehood.vectors.compare import first_difference
from fumehood.vectors.record import Vector
from fumehood_agent.adapter import work
from fumehood_agent.errors import Ended, FumehoodError, NotAnAction
from fumehood_agent.loading import load_agent
from fumehood_agent.seat import Seat


class Replay(Protocol):
    """Plays a vector and returns what was seen, in the recorded form."""

    def play(self, vector: Vector) -> Mapping[str, Any]:
        """Play the vector's calls, or let its agent make its own.

        Raises:
            FumehoodError: the input is one that cannot be played; of this package or of the SDK.
        """
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a vector fared."""

    vector_id: str
    difference: str | None
    """The first one; None where there is none."""


def check(vector: Vector, replay: Replay) -> Verdict:
    """Play a vector and compare.

    An input on which the recorded system failed passes when it is answered or refused in a typed way.
    """
    try:
        seen = replay.play(vector)
    except (RunnerError, FumehoodError) as error:
        if vector.expect is None:
            return Verdict(vector.vector_id, None)
        return Verdict(vector.vector_id, f"{type(error).__name__}: {error}")
    if vector.expect is None:
        return Verdict(vector.vector_id, None)
    expected = {key: value for key, value in vector.expect.items() if key in seen}
    actual = {key: value for key, value in seen.items() if key in expected}
    return Verdict(vector.vector_id, first_difference(expected, actual))


def drive(vector: Vector, seat: Seat) -> None:
    """Play a vector's moves at a seat, or let its agent work there, until the work ends."""
    if vector.agent is not None:
        work(load_agent(f"builtin:{vector.agent}"), seat)
        return
    for move in vector.moves:
        name, arguments = move["tool_name"], move["args"]
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise NotAnAction(move)
        try:
            reply = seat.call(name, copy_object(arguments))
        except Ended:
            return
        if reply.ended:
            return
    seat.submit()
