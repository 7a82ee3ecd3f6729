"""What the wall itself says to an agent: no tool saw the message and nothing was charged."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fumehood.core.json_values import JsonObject


class RefusalKind(Enum):
    """Why a message was not let through. Closed; mirrored on the wire."""

    MALFORMED = "malformed"
    """Not one JSON object, or holds NaN, Infinity or a lone surrogate."""
    TOO_LARGE = "too_large"
    """Longer than the limit, in bytes."""
    TOO_DEEP = "too_deep"
    """Nested deeper than the limit, in levels."""
    ENDED = "ended"
    """The seat's work has ended."""
    CALL_ID_REUSED = "call_id_reused"
    """The name of the call stands for a different call already."""
    TOO_MANY_REFUSALS = "too_many_refusals"
    """Too many messages were refused before; the limit is a count."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A message that was not let through; 0 where the kind has no number."""

    kind: RefusalKind
    limit: int = 0
    actual: int = 0


@dataclass(frozen=True, slots=True)
class CallRefused:
    """The wall did not let a message through."""

    seat: str
    refusal: str
    """Kind of refusal, lower case, such as ``too_deep``."""
    limit: int
    actual: int

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {
            "kind": "refused",
            "seat": self.seat,
            "refusal": self.refusal,
            "limit": self.limit,
            "actual": self.actual,
        }
