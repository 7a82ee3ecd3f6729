"""Where two episodes of one task went different ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from fumehood.core.evidence import Exchange


class Way(Enum):
    """What differed first."""

    CALL = "call"
    """The agent asked for something else, though it had been told the same."""
    ANSWER = "answer"
    """The same call was answered otherwise."""
    END = "end"
    """One stopped where the other went on."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first difference."""

    call: int
    """Number of the call, from 1."""
    way: Way


def first_divergence(first: Sequence[Exchange], second: Sequence[Exchange]) -> Divergence | None:
    """Return where two lists of calls part; None where they are the same."""
    for number, (one, other) in enumerate(zip(first, second, strict=False), 1):
        if (one.seat, one.tool_name, dict(one.sent)) != (
            other.seat,
            other.tool_name,
            dict(other.sent),
        ):
            return Divergence(number, Way.CALL)
        if (one.output, one.failure) != (other.output, other.failure):
            return Divergence(number, Way.ANSWER)
    if len(first) != len(second):
        return Divergence(min(len(first), len(second)) + 1, Way.END)
    return None
