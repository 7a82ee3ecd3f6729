"""Turns of a seat between the core's words and the wire's."""

from __future__ import annotations

from collections.abc import Iterable

from fumehood.core.conversation import Turn
from fumehood.core.errors import SpecError
from fumehood_agent._proto.v1 import episode_pb2


def turns_to_pb(turns: Iterable[Turn]) -> list[episode_pb2.Turn]:
    """Return what the user says next.

    Raises:
        SpecError: a text cannot cross the wire.
    """
    return [
        episode_pb2.Turn(
            instruction=wire_text("further_turns.instruction", turn.instruction),
            tools=[wire_text("further_turns.tools", name) for name in turn.tools],
        )
        for turn in turns
    ]


def turns_from_pb(turns: Iterable[episode_pb2.Turn]) -> tuple[Turn, ...]:
    """Return what :func:`turns_to_pb` wrote."""
    return tuple(Turn(turn.instruction, tuple(turn.tools)) for turn in turns)


def wire_text(field: str, text: str) -> str:
    """Return the text.

    Raises:
        SpecError: it holds half a surrogate pair.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SpecError(field, "holds a lone surrogate, which no text on the wire can") from None
    return text
