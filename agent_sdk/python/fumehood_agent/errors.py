"""What goes wrong around the tools, by who must mend it.

::

    FumehoodError
    ├── Refused              you: the message was not let through; nothing happened, nothing was charged
    │   └── Ended            … because your work has ended
    ├── DeadlinePassed       you: no answer within the time you gave; the call may have been carried out
    ├── NotAnAction          you: what ``act`` returned cannot be carried out
    ├── UsageError           you: the command names no agent, or a file that cannot be read
    └── ServiceUnavailable   not you
        ├── NotReachable     nobody answers at the socket
        ├── ConnectionLost   somebody did, and went away; the last call may have been carried out
        └── ServiceFailed    the answer was not one this client understands

The tree is closed, and nothing in it is named by the other side. What a tool says is never one of these:
it is a returned :class:`~fumehood_agent.seat.Failure`.
"""

from __future__ import annotations

from enum import Enum


class FumehoodError(Exception):
    """Anything this package raises on purpose."""


class RefusalKind(Enum):
    """Why a message was not let through. The numbers are those of the protocol."""

    MALFORMED = 1
    """The arguments are not one JSON object, or hold NaN, Infinity or half a surrogate pair."""
    TOO_LARGE = 2
    """Longer than the limit, in bytes."""
    TOO_DEEP = 3
    """Nested deeper than the limit, in levels."""
    ENDED = 4
    """The work has ended."""
    CALL_ID_REUSED = 5
    """Another call went by this name before."""
    TOO_MANY_REFUSALS = 6
    """More messages were refused already than the limit, a count."""


class Refused(FumehoodError):
    """The message was not let through: no tool saw it and nothing was charged."""

    def __init__(
        self, kind: RefusalKind, limit: int = 0, actual: int = 0, reason: str = ""
    ) -> None:
        """Hold what was refused and why.

        Args:
            kind: why.
            limit: what would have been let through, in the unit of the kind; 0 where it has none.
            actual: what was sent, in the same unit.
            reason: more about it, where this side knows more.
        """
        numbers = f": {actual}, at most {limit}" if limit or actual else ""
        detail = f": {reason}" if reason else ""
        super().__init__(f"refused, {kind.name.lower()}{numbers}{detail}")
        self.kind = kind
        self.limit = limit
        self.actual = actual


class Ended(Refused):
    """The work has ended: submitted, given up, or out of budget."""

    def __init__(self) -> None:
        super().__init__(RefusalKind.ENDED)


class DeadlinePassed(FumehoodError):
    """There was no answer in time; sent again under the same ``call_id``, the call is carried out once."""

    def __init__(self, path: str, deadline_ms: int) -> None:
        super().__init__(f"{path}: no answer within {deadline_ms} ms")
        self.path = path
        self.deadline_ms = deadline_ms


class NotAnAction(FumehoodError):
    """What ``act`` returned is none of the things that can be carried out."""

    def __init__(self, returned: object) -> None:
        super().__init__(
            f"act() returned {type(returned).__name__}; expected tool_name and args, Answer, GiveUp or None"
        )
        self.returned = returned


class UsageError(FumehoodError):
    """The command cannot be carried out as given; the message is one line that says what to do."""


class ServiceUnavailable(FumehoodError):
    """The other side of the socket cannot be used; the agent has done nothing wrong."""


class NotReachable(ServiceUnavailable):
    """Nobody answers at the socket."""

    def __init__(self, path: str, waited_ms: int, reason: str) -> None:
        super().__init__(f"{path}: {reason} (waited {waited_ms} ms)")
        self.path = path
        self.waited_ms = waited_ms


class ConnectionLost(ServiceUnavailable):
    """The connection broke; whether the last call was carried out is not known."""

    def __init__(self, path: str, answered: int) -> None:
        super().__init__(f"{path}: connection lost after {answered} answered calls")
        self.path = path
        self.answered = answered
        """Calls of this session that were answered before."""


class ServiceFailed(ServiceUnavailable):
    """The other side answered with something this client does not understand."""
